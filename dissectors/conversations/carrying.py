"""States that carry another one: what a conversation is taken to be, inside of what carries it."""

from __future__ import annotations

from .conversation import Conversation, ConversationState


def current_of(conversation: Conversation) -> ConversationState:
    """Return what a conversation is taken to be, inside of what only carries it."""
    inside = conversation.state.inside
    return conversation.state if inside is None else inside


def become(conversation: Conversation, state: ConversationState) -> None:
    """Take a conversation, or what is carried in it, to be something else from now on."""
    outside = conversation.state
    if outside.inside is None:
        conversation.state = state
    else:
        outside.inside = state
        outside.is_rocketmq = state.is_rocketmq
        outside.may_give_commands = state.may_give_commands
