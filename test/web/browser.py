"""A headless Chromium, driven through the pipe of its DevTools protocol. Needs nothing but the standard library."""
import json
import os
import subprocess
import time


class browser:
    """One tab of a browser with a new profile in `folder`."""

    def __init__(self, folder, log):
        to_read, self.to = os.pipe()
        self.replies, to_write = os.pipe()
        os.set_inheritable(to_read, True)
        os.set_inheritable(to_write, True)
        # The browser expects the pipes as descriptors 3 and 4.
        script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
             f"--user-data-dir={folder}", "about:blank"],
            close_fds=False, stdin=subprocess.DEVNULL, stdout=open(log, "w"), stderr=subprocess.STDOUT)
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.unread = b""
        self.events = []
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Network.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.read()
            if reply.get("id") != self.number:
                self.events.append(reply)
            elif "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']}")
            else:
                return reply["result"]

    def read(self):
        while b"\0" not in self.unread:
            part = os.read(self.replies, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.unread += part
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def value(self, expression):
        """The value of an expression in the page; an exception there is one here."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def wait(self, expression, what, seconds=30):
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"after {seconds} s still not: {what}")
            time.sleep(0.05)

    def go(self, url):
        self.call("Page.navigate", url=url)

    def type(self, text):
        """Into the element that has the focus, as a keyboard does, and then the Enter key."""
        self.call("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
