"""Hypothesis strategies of records, drawn from the tables: every type, every version, every field."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from kframe.plugin.kraft import CONTROL_TABLES, TABLES, Field, Kind, RecordAndVersion, Table, control


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


#: Values of each primitive type.
VALUES: Final[dict[Kind, st.SearchStrategy[Any]]] = {
    Kind.BOOL: st.booleans(),
    Kind.INT8: _integers(8),
    Kind.INT16: _integers(16),
    Kind.UINT16: st.integers(0, 2**16 - 1),
    Kind.INT32: _integers(32),
    Kind.INT64: _integers(64),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.UUID: st.uuids(),
    Kind.STRING: st.text(max_size=8),
    Kind.BYTES: st.binary(max_size=8),
}


def field_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    """Return values of a field in this version."""
    value = struct_values(field.kind, version) if isinstance(field.kind, Table) else VALUES[field.kind]
    if field.array:
        value = st.lists(value, max_size=4).map(tuple)
    return st.none() | value if field.nullable else value


def struct_values(table: Table, version: int) -> st.SearchStrategy[Any]:
    """Return records of a table in this version. A tagged field is often absent."""
    present = [field for field in table.fields if field.since <= version and field.json_name != "version"]
    required = {field.name: field_values(field, version) for field in present if field.tag is None}
    optional = {field.name: field_values(field, version) for field in present if field.tag is not None}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: table.record(**values))


def versioned_records() -> st.SearchStrategy[RecordAndVersion]:
    """Return metadata records of every type and version."""
    return st.one_of(
        [
            st.builds(RecordAndVersion, struct_values(table, version), st.just(version))
            for table in TABLES.values()
            for version in range(table.latest + 1)
        ]
    )


def control_records() -> st.SearchStrategy[control.ControlRecord]:
    """Return control records of every type and version."""
    return st.one_of(
        [
            st.builds(
                lambda record, version: type(record)(
                    **{name: getattr(record, name) for name in record.__struct_fields__ if name != "version"},
                    version=version,
                ),
                struct_values(table, version),
                st.just(version),
            )
            for table in CONTROL_TABLES.values()
            for version in range(table.latest + 1)
        ]
    )
