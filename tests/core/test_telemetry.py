"""ONNX Runtime keeps, and tells, nothing of its use."""

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import ssil, time
from onnx import TensorProto, helper
from ssil.core.onnx_session import cpu_session
places = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", places[:1], places[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
cpu_session(model.SerializeToString(), 1)
time.sleep(0.5)
"""


def test_nothing_is_kept_in_the_home_folder(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", CODE], check=True, env={**kept, **home})
    assert [*tmp_path.rglob("*onnxruntime*")] == []
