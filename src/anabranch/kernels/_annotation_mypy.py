"""`In`, `Out` and `InOut` for mypy. Nothing imports this module at run time.

mypy accepts a name of type Any with any subscript in an annotation. It still resolves a string in the subscript as a
forward reference, so ``ab.In["float32", 2]`` needs ``# type: ignore[name-defined]``, and ``ab.In[np.float32, 2]`` needs
nothing.
"""

from typing import Any

In: Any
Out: Any
InOut: Any
