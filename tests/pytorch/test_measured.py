"""The cells of chapters 11 and 12 that measure a GPU, on a stand-in for it: the CPU as cuda:0."""

import json
from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tools.chapters import ROOT

GPU, CPU = torch.device("cuda:0"), torch.device("cpu")
CELL_IDS = {  # the last one measures, the others set what it uses
    "11_gpu": "02 03 20 31 33 41 46 48 50 72 76 77 79",
    "12_flash_attention": "02 03 62",
}


class StandIn(TorchFunctionMode):
    """Make on the CPU what is asked for on cuda:0."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args = [CPU if isinstance(value, torch.device) else value for value in args]
        return func(*args, **{k: CPU if v == GPU else v for k, v in (kwargs or {}).items()})


@pytest.mark.parametrize("chapter", CELL_IDS)
def test_cells_that_measure_a_gpu_run_to_their_last_line(chapter, monkeypatch, capsys):
    gpu_properties = SimpleNamespace(name="stand-in", total_memory=2**34)
    cuda_answers = {"is_available": True, "device_count": 1, "get_device_capability": (9, 0)}
    for name, value in (cuda_answers | {"get_device_properties": gpu_properties}).items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    measure_path = "tutorial_lib.pytorch.measure"  # without a clock
    monkeypatch.setattr(
        measure_path, lambda call, device: SimpleNamespace(median_ms=call().numel())
    )
    cells = json.loads((ROOT / f"notebooks/{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources, names = {cell["id"][3:]: "".join(cell["source"]) for cell in cells}, {"device": GPU}
    for cell in CELL_IDS[chapter].split():
        source = sources[cell].replace("MEASURE = False", "MEASURE = True")
        with StandIn():
            exec(source.replace("8192", "32").replace("2048", "32"), names)
    assert "SDPA" in capsys.readouterr().out.splitlines()[-2]
