"""Activations as layers."""

from collections.abc import Callable
from typing import Any

from numbagrad import initializer, nd
from numbagrad.gluon.block import HybridBlock
from numbagrad.nd.ndarray import NDArray


class Activation(HybridBlock):
    """An activation by name.

    Parameters
    ----------
    activation : str
        ``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or ``softsign``.

    Raises
    ------
    MXNetError
        From the call, for another name.
    """

    def __init__(self, activation: str, prefix: str | None = None, params: Any = None) -> None:
        self._act_type = activation
        self._watchers: list[Callable[[Any], None]] = []
        super().__init__(prefix=prefix, params=params)

    def _alias(self) -> str:
        return self._act_type

    def _hooks_changed(self) -> None:
        super()._hooks_changed()
        # A Dense computes its activation itself, unless somebody listens.
        for watcher in self._watchers:
            watcher(self)

    def forward(self, x: Any) -> NDArray:
        """The activation of `x`."""
        return nd.Activation(x, act_type=self._act_type)

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The same with the functions of `F`."""
        return F.Activation(x, act_type=self._act_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """``x`` where it is positive, ``alpha x`` elsewhere.

    Raises
    ------
    AssertionError
        For a negative `alpha`.
    """

    def __init__(self, alpha: float, prefix: str | None = None, params: Any = None) -> None:
        assert alpha >= 0, "Slope coefficient for LeakyReLU must be no less than 0."
        super().__init__(prefix=prefix, params=params)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The activation of `x`."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """:class:`LeakyReLU` with a slope that is trained (He et al. 2015).

    Parameters
    ----------
    alpha_initializer : str or Initializer
    in_channels : int
        1 for one slope, or the length of axis 1 for one a channel.
    """

    def __init__(
        self,
        alpha_initializer: Any = initializer.Constant(0.25),  # noqa: B008 - never changed
        in_channels: int = 1,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> NDArray:
        """The activation of `x`."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu")


class ELU(HybridBlock):
    """``x`` where it is positive, ``alpha (exp(x) - 1)`` elsewhere (Clevert et al. 2015)."""

    def __init__(self, alpha: float = 1.0, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The activation of `x`."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The self-normalising :class:`ELU` with its published constants (Klambauer et al. 2017)."""

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The activation of `x`."""
        return F.LeakyReLU(x, act_type="selu")


class GELU(HybridBlock):
    """``x`` times the normal distribution function of `x` (Hendrycks and Gimpel 2016)."""

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The activation of `x`."""
        return F.LeakyReLU(x, act_type="gelu")


class Swish(HybridBlock):
    """``x sigmoid(beta x)`` (Ramachandran et al. 2017)."""

    def __init__(self, beta: float = 1.0, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The activation of `x`."""
        return x * F.sigmoid(self._beta * x)
