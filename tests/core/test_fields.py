from typing import Annotated, Literal

import pytest

from twin.core.fields import Field, Row, fields_of, flatten, quantity

Size = Annotated[int, quantity("Size", unit="bytes", ge=0, le=10, example=3)]


class Small(Row):
    kind: Annotated[Literal["small"], quantity("Kind")] = "small"
    size: Size


class Large(Row):
    kind: Annotated[Literal["large"], quantity("Kind")] = "large"
    size: Size
    weight: Annotated[float, quantity("Weight", unit="kg", gt=0)] | None = None


class Box(Row):
    name: Annotated[str, quantity("Name")]
    content: Small | Large


def test_a_column_carries_its_whole_declaration():
    assert fields_of(Small)[1] == Field("size", "integer", "Size", "bytes", 0, False, 10, example=3)


def test_union_members_share_columns_and_own_ones_may_be_missing():
    fields = {field.name: field for field in fields_of(Box)}
    assert list(fields) == ["name", "kind", "size", "weight"]
    assert fields["kind"].choices == ("small", "large")
    assert not fields["size"].nullable
    assert fields["weight"].nullable
    assert fields["weight"].range_text == "> 0"


def test_one_name_cannot_mean_two_things():
    class Other(Row):
        size: Annotated[int, quantity("Size", unit="KB")]

    class Confused(Row):
        content: Small | Other

    with pytest.raises(TypeError, match="size"):
        fields_of(Confused)


def test_flatten_uses_the_column_names():
    assert flatten(Box(name="b", content=Small(size=1))) == {"name": "b", "kind": "small", "size": 1}
