"""unsteady_server.py PORT PAGE STATE: serves the live page with a state that has everything the page can show.

Some requests for the state fail, the counters grow, and the device restarts once. Under /with-token/ the state needs a
token.
"""
import copy
import http.server
import json
import sys

port, page, state = int(sys.argv[1]), open(sys.argv[2], "rb").read(), json.load(open(sys.argv[3]))
# The page draws the samples only while they are visible.
page = page.replace(b'<details id="all">', b'<details id="all" open>')


def family(kind, samples):
    return {"type": kind, "help": "", "samples": samples}


def batcher_metrics(n):
    def histogram(buckets):
        grown = [[upper, count * n] for upper, count in buckets]
        total = sum(count for _, count in grown)
        return family("histogram", [{"labels": {"batcher": "resize"},
                                     "value": {"count": total, "sum": sum(u * c for u, c in grown), "p50": 1, "p99": 1, "buckets": grown}}])

    def sample(value, **labels):
        return {"labels": {"batcher": "resize", **labels}, "value": value}

    return {
        "coaccel_batcher_requests_total": family("counter", [sample(900 * n, outcome="completed"),
                                                             sample(10 * n, outcome="refused")]),
        "coaccel_batcher_queue": family("gauge", [sample(17 + n % 5, level="0"), sample(2, level="1")]),
        "coaccel_batcher_batches_in_flight": family("gauge", [sample(1 + n % 3)]),
        "coaccel_batcher_batch_size": histogram([[1, 1], [2, 2], [4, 3], [8, 4], [16, 9], [32, 20], [64, 12]]),
        "coaccel_batcher_queue_seconds": histogram([[0.0001, 5], [0.0004, 30], [0.001, 10], [0.004, 1]]),
        "coaccel_batcher_form_seconds": histogram([[0.00001, 40], [0.00002, 5]]),
        "coaccel_batcher_run_seconds": histogram([[0.0007, 30], [0.0009, 15], [0.002, 1]]),
    }


class handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    of_restarted = 0

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def restarted(self):
        """The counters of the second process are lower than those of the first."""
        handler.of_restarted += 1
        n = handler.of_restarted
        now = copy.deepcopy(state)
        now["process"] = "first" if n < 4 else "second"
        for device in now["devices"]:
            device["stats"]["at_ms"] += 1000 * n
            device["stats"]["completed"] = (10**9 if n < 4 else 0) + n
        self.reply(200, "application/json", json.dumps(now).encode())

    def do_GET(self):
        if self.path.startswith("/with-token/debug"):
            return self.reply(401, "text/plain", b"")
        if self.path.startswith("/restarted/debug"):
            return self.restarted()
        if not self.path.endswith("/debug/state"):
            return self.reply(200, "text/html; charset=utf-8", page)
        handler.asked += 1
        n = handler.asked
        if n in (3, 4):
            return self.reply(500, "text/plain", b"")
        now = copy.deepcopy(state)
        now["at_ms"] += 1000 * n
        for device in now["devices"]:
            stats = device["stats"]
            stats["at_ms"] += 1000 * n
            for name in ("ops", "completed", "bytes_to_device", "bytes_to_host"):
                stats[name] += 1000 * n
            for row in stats["ops_by_name"]:
                row["count"] += 100 * n
                # Within the last minute an op takes longer than it took before.
                row["max"] = row["max"] * 2 + 0.001
                row["sum"] += row["max"] * 100 * n
                row["buckets"].append([row["max"], 100 * n])
            stats["plans"].append({"op": "plan poisoned", "completed": 3 * n, "failed": 2, "cancelled": 1, "expired": 0,
                                   "reruns": n, "bytes_to_device": 3 * n * 2048, "bytes_to_host": 3 * n * 1024,
                                   "instances": 4, "running": 1, "waiting": 2, "quarantined": 1 if n > 4 else 0})
            if n > 4:
                device["generation"] += 1
                stats["restarts"] += 1
                stats["reruns"] += 7
        now["metrics"].update(batcher_metrics(n))
        # What NaN becomes in JSON.
        now["metrics"]["no_sum"] = family("summary", [{"labels": {}, "value": {"count": 1, "sum": None, "quantiles": []}}])
        self.reply(200, "application/json", json.dumps(now).encode())


http.server.ThreadingHTTPServer(("127.0.0.1", port), handler).serve_forever()
