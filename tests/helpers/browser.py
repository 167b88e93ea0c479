"""Headless Chromium without a network, driven through its debugging pipe: no package besides the browser is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--proxy-server=127.0.0.1:9", "--host-resolver-rules=MAP * ~NOTFOUND"),
]
"""The proxy is a port without a server: nothing that a page asks for from outside arrives."""
PATIENCE = 60.0  # seconds


def require_chromium() -> str:
    """Return the browser's path; skip the test where none is installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("needs Chromium (on Debian: apt-get install chromium)")


LIVE = [
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
"""For the page of a server on this machine, which draws by WebGL; later flags win."""


class Page:
    """A page of a file, or of a server at an address on this machine.

    Collects what its console says, its exceptions, and the addresses that it asks for.
    """

    def __init__(
        self, file: Path | str, scratch: Path, *, width: int = 1200, height: int = 900, dark: bool = False
    ) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()[::-1]
        self._write, self._read = ours, from_browser

        def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4
            first, second = os.dup(to_browser), os.dup(theirs)
            os.dup2(first, 3)
            os.dup2(second, 4)

        flags = [flag for flag in FLAGS if flag != "--disable-gpu"] + LIVE if isinstance(file, str) else FLAGS
        command = [require_chromium(), *flags, f"--user-data-dir={scratch}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen(
            command, preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(theirs)
        self._buffer, self._number = b"", 0
        self.said: list[str] = []
        """Warnings and errors of the console, and exceptions."""
        self.requested: list[str] = []
        """Addresses that the page asked for."""
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.send(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Page.navigate", url=file if isinstance(file, str) else file.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol !== 'about:'")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the page's protocol."""
        return self._send(method, session=self._session, **params)

    def evaluate(self, code: str) -> Any:
        """Evaluate JavaScript in the page, and return its value."""
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until JavaScript is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.05)

    def press(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        """Press a key of the keyboard, such as ArrowRight."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name])

    def screenshot(self, *, whole: bool = False) -> bytes:
        """Take a picture of the window, or of the whole page, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def _send(self, method: str, *, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0], "the browser is silent"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        name, params = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.said.append(json.dumps(params["args"]))
        elif name == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
