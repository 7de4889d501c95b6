"""The software bill of materials of a wheel: what its machine code is made of, and what made it.

In CycloneDX, for the folder that PEP 770 names. The same packages and compiler give the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

LIBRARY, PROGRAM = ComponentType.LIBRARY, ComponentType.APPLICATION
# Some of it is in the machine code, or none.
IN, OUT = ComponentScope.REQUIRED, ComponentScope.EXCLUDED

CYTHON = "what each extension module begins with, and the code that Cython writes for Python's"
CUDA = "types of the CUDA driver, from its headers; nothing of CUDA is linked or copied"
TEMPLATES = "templates and inline functions of its headers; the library itself is the system's"
INLINE = "inline functions and macros of its headers"

PARTS = (
    ("pypi", "cython", LIBRARY, IN, "Apache-2.0", CYTHON),
    ("generic", "cpython", LIBRARY, IN, "Python-2.0", INLINE),
    ("generic", "libstdc++", LIBRARY, IN, "GPL-3.0-or-later WITH GCC-exception-3.1", TEMPLATES),
    ("pypi", "nvidia-cuda-runtime-cu12", LIBRARY, OUT, None, CUDA),
    ("pypi", "nvidia-cuda-nvrtc-cu12", PROGRAM, OUT, None, "compiles the core's CUDA C++ to PTX"),
    ("generic", "g++", PROGRAM, OUT, "GPL-3.0-or-later", "compiles and links"),
    ("pypi", "cmake", PROGRAM, OUT, "BSD-3-Clause", "builds"),
    ("pypi", "ninja", PROGRAM, OUT, "Apache-2.0", "builds"),
    ("pypi", "scikit-build-core", PROGRAM, OUT, "Apache-2.0", "builds"),
)


def bill(version: str, versions: Mapping[str, str], epoch: int) -> str:
    """Return the bill of a wheel, as JSON.

    Parameters
    ----------
    version : str
        Of the wheel.
    versions : mapping of str to str
        Of each part: of CPython, of g++ and its library, and of the packages that it was built with.
    epoch : int
        The time of the build, in seconds since 1970.
    """
    product = component("pypi", "anabranch", version, LIBRARY, IN, "Apache-2.0", None)
    parts = [component(kind, name, versions[name], *rest) for kind, name, *rest in PARTS]
    bom = Bom(components=parts, serial_number=uuid5(NAMESPACE_URL, str(product.purl)))
    bom.metadata.component = product
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.register_dependency(product, parts)
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill is not as CycloneDX wants it: {wrong}")
    return text + "\n"


def component(
    kind: str,
    name: str,
    version: str,
    type_: ComponentType,
    scope: ComponentScope,
    licence: str | None,
    description: str | None,
) -> Component:
    return Component(
        name=name,
        version=version,
        type=type_,
        scope=scope,
        licenses=[LicenseFactory().make_from_string(licence)] if licence else [],
        description=description,
        purl=PackageURL(kind, None, name, version),
        bom_ref=f"{kind}:{name}@{version}",
    )
