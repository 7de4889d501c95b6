"""`In`, `Out` and `InOut` as mypy sees them; nothing imports this module at run time.

mypy accepts a name of type Any in an annotation, with any subscript. It still looks up a string
in the subscript as a forward reference, so ``ab.In["float32", 2]`` needs
``# type: ignore[name-defined]`` there and ``ab.In[np.float32, 2]`` needs nothing.
"""

from typing import Any

In: Any
Out: Any
InOut: Any
