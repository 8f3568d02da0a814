"""Mutation operators for documents and JSONLogic expressions, shared by policies and scenarios."""
