"""What the gateway knows of models, as dated data, and what calls to them cost."""

from peripety.gateway.models.catalogue import Catalogue
from peripety.gateway.models.cost import (
    Cost,
    cost_of,
    cost_of_call,
    in_dollars,
    most_it_can_cost,
    price_unknown,
)
from peripety.gateway.models.listing import ListedModel, ModelList
from peripety.gateway.models.model import CacheKind, CacheRules, Capability, ModelData, Traits
from peripety.gateway.models.prices import PeakHours, Price

__all__ = [
    "CacheKind",
    "CacheRules",
    "Capability",
    "Catalogue",
    "Cost",
    "ListedModel",
    "ModelData",
    "ModelList",
    "PeakHours",
    "Price",
    "Traits",
    "cost_of",
    "cost_of_call",
    "in_dollars",
    "most_it_can_cost",
    "price_unknown",
]
