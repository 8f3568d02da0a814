"""Static analysis of policies: proofs and witnesses over all possible requests, without sampling."""
