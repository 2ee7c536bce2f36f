"""One request at a time from one thread (upload 4 KiB, gemv 1024 x 1024, download 4 KiB): a plan of coaccel against
PyTorch, eager and as a replayed CUDA graph. PyTorch's host memory is pinned; the plan's is ordinary memory, which it
copies through pinned memory of its own.

usage: plan_pytorch.py COACCEL_GPU_BENCH
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time

import torch

N = 1024
ROUNDS = 5
SKIP = 200
COUNT = 3000


class Request:
    def __init__(self):
        self.x_host = torch.full((N,), 1.0).pin_memory()
        self.y_host = torch.empty(N).pin_memory()
        self.a = torch.full((N, N), 1.0 / N, device="cuda")
        self.x = torch.empty(N, device="cuda")
        self.y = torch.empty(N, device="cuda")

    def start(self):
        self.x.copy_(self.x_host, non_blocking=True)
        torch.mv(self.a, self.x, out=self.y)
        self.y_host.copy_(self.y, non_blocking=True)

    def check(self):
        assert torch.allclose(self.y_host, torch.ones(N), rtol=1e-4), "PyTorch's answer is wrong"


def round_trips(start):
    """The median time of a request in microseconds."""
    synchronize = torch.cuda.current_stream().synchronize
    times = []
    for i in range(SKIP + COUNT):
        began = time.perf_counter_ns()
        start()
        synchronize()
        if i >= SKIP:
            times.append((time.perf_counter_ns() - began) / 1000)
    return statistics.median(times)


def capture(request):
    # PyTorch requires a first run on a side stream before the capture.
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            request.start()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        request.start()
    return graph


def our_round_trip(bench):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([bench, "--json", report.name, "plan_rtt_vs_graph"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return json.load(open(report.name))[0]["ours"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().splitlines()[-1])
    request = Request()
    graph = capture(request)
    ours, eager, replayed = [], [], []
    with torch.inference_mode():
        for _ in range(ROUNDS):
            ours.append(our_round_trip(sys.argv[1]))
            eager.append(round_trips(request.start))
            request.check()
            replayed.append(round_trips(graph.replay))
            request.check()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, medians of {ROUNDS} rounds")
    fine = True
    for name, theirs, goal in (("plan_pytorch_eager", eager, 0.6), ("plan_pytorch_graph", replayed, 1.05)):
        mine, other = statistics.median(ours), statistics.median(theirs)
        met = mine / other <= goal
        fine = fine and met
        print(f"{name:28} {mine / other:10.3f} {mine:12.2f} {other:12.2f}  {'us p50':15} <= {goal:<5} "
              f"{'met' if met else 'missed'}")
    sys.exit(0 if fine else 1)


main()
