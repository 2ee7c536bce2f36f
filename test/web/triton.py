#!/usr/bin/env python3
"""triton.py HOST:PORT: uses a server with the model of example/digits as a client of a Triton server does."""
import sys

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException


def main(address):
    client = triton.InferenceServerClient(address, concurrency=8)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
    assert client.get_server_metadata()["name"] == "coaccel"
    metadata = client.get_model_metadata("digits")
    assert metadata["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 8, 8]}], metadata
    assert client.get_model_config("digits")["max_batch_size"] == 64

    images = np.random.default_rng(1).uniform(0, 16, (3, 8, 8)).astype(np.float32)
    answers = []
    for binary_input in (True, False):
        for binary_output in (True, False):
            image = triton.InferInput("image", [3, 8, 8], "FP32")
            image.set_data_from_numpy(images, binary_data=binary_input)
            wanted = triton.InferRequestedOutput("probabilities", binary_data=binary_output)
            reply = client.infer("digits", [image], outputs=[wanted], request_id="7", timeout=5_000_000, priority=1)
            assert reply.get_response()["id"] == "7"
            answers.append(reply.as_numpy("probabilities"))
    for answer in answers:
        assert answer.shape == (3, 10) and np.allclose(answer.sum(axis=1), 1, atol=1e-4), answer
        assert np.allclose(answer, answers[0], atol=1e-6)

    waiting = [client.async_infer("digits", [image], model_version="1") for _ in range(200)]
    assert all(np.allclose(w.get_result().as_numpy("probabilities"), answers[0], atol=1e-5) for w in waiting)
    statistics = client.get_inference_statistics("digits")["model_stats"][0]
    assert statistics["inference_count"] == 3 * 204, statistics

    client.unload_model("digits")
    assert not client.is_model_ready("digits")
    client.load_model("digits")
    assert client.is_model_ready("digits")
    assert client.get_model_repository_index()[0]["state"] == "READY"

    for call, status in (
        (lambda: client.infer("nothing", [image]), "404"),
        (lambda: client.infer("digits", [triton.InferInput("image", [1, 8], "FP32").set_data_from_numpy(
            np.zeros((1, 8), np.float32))]), "400"),
        (lambda: client.get_model_metadata("nothing"), "404"),
    ):
        try:
            call()
            raise AssertionError("there was no error")
        except InferenceServerException as e:
            assert status in (e.status() or ""), e


main(sys.argv[1])
