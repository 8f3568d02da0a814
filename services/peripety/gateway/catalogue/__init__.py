"""Model catalog: dated data about models, and the cost of calls."""

from peripety.gateway.catalogue.catalogue import Catalogue
from peripety.gateway.catalogue.cost import (
    Cost,
    cost_of,
    cost_of_call,
    in_dollars,
    most_it_can_cost,
    price_unknown,
)
from peripety.gateway.catalogue.listing import ListedModel, ModelList
from peripety.gateway.catalogue.model import CacheKind, CacheRules, Capability, ModelData, Traits
from peripety.gateway.catalogue.prices import PeakHours, Price

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
