"""What the levels of features change in the decisions of a controller (Kafka 4.4 ``MetadataVersion``, ``Feature``)."""

from __future__ import annotations

from typing import Final

from kframe.model.kraft.ids import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataLevel

#: The rule that each level of a feature introduces. Other levels change no decision.
LEVEL_RULES: Final = {
    METADATA_VERSION: {
        int(MetadataLevel.SCRAM): "users can have SCRAM credentials",
        int(
            MetadataLevel.NO_EPOCH_BUMP_ON_SHRINK
        ): "the shrink of an ISR no longer raises the leader epoch (KAFKA-15021)",
        13: "the metadata log can have transactions (KIP-868)",
        int(MetadataLevel.DELEGATION_TOKENS): "users can have delegation tokens",
        int(
            MetadataLevel.CONTROLLER_REGISTRATION
        ): "controllers register, and must support a new feature level (KIP-919)",
        int(
            MetadataLevel.DIRECTORIES
        ): "a failed log directory takes its replicas out of ISRs and leaderships (KIP-858)",
        int(MetadataLevel.ELR): f"{ELR_VERSION} can be 1 (KIP-966)",
        int(MetadataLevel.CORDONED_DIRECTORIES): "cordoned log directories get no new replicas (KIP-1066)",
        int(MetadataLevel.ADDRESS_RANGES): "ACLs can name ranges of addresses",
        int(MetadataLevel.UNREGISTER_CONTROLLER): "registrations of controllers can be removed (KIP-1312)",
    },
    ELR_VERSION: {
        1: "replicas that leave an ISR below min.insync.replicas remain eligible leaders, and the ISR can become empty"
    },
    KRAFT_VERSION: {1: "the voters of the quorum are in the metadata log, and can change (KIP-853)"},
}


def rules_between(feature: str, before: int, after: int) -> list[tuple[int, str]]:
    """The levels above the lower one, up to the higher one, that introduce a rule, with this rule."""
    low, high = sorted((before, after))
    return [(level, text) for level, text in LEVEL_RULES.get(feature, {}).items() if low < level <= high]
