"""A headless Chromium, driven over the DevTools protocol."""

import json
import shutil
import subprocess
import time
from importlib.resources import files
from pathlib import Path

import pytest
import websocket

CHROMIUM = shutil.which("chromium")
REASON = "needs Chromium; Debian, Ubuntu: apt-get install chromium"
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=REASON)
CHECKS = Path(__file__).with_name("page_checks.js").read_text()
DOCS = Path(__file__).parents[1] / "docs"
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35}
PHONE, DESK = 390, 1280  # widths in CSS pixels
SECONDS = 60  # for any answer; a page under load takes a few


class Browser:
    """One browser with one tab.

    Commands are answered in turn; what happens meanwhile is in `events`. A page is
    opened from the disk, as a reader opens it.
    """

    def __init__(self, folder: Path):
        self.process = subprocess.Popen(
            [
                *(str(CHROMIUM), "--headless=new", "--remote-debugging-port=0"),
                f"--user-data-dir={folder}",
                "--no-sandbox",  # Chromium as root, in a container, needs it
                *("--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
                *("--no-first-run", "--disable-background-networking"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        where = folder / "DevToolsActivePort"
        end = time.monotonic() + SECONDS
        while not (where.exists() and where.read_text().count("\n")):
            assert self.process.poll() is None, "chromium ended before it listened"
            assert time.monotonic() < end, "chromium did not say where it listens"
            time.sleep(0.05)
        port, path = where.read_text().splitlines()
        options = {"timeout": SECONDS, "suppress_origin": True}
        url = f"ws://127.0.0.1:{port}{path}"
        self.socket = websocket.create_connection(url, **options)
        self.events: list[dict] = []
        self.number = 0
        self.session = ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self.socket.close()
        self.process.terminate()
        self.process.wait(SECONDS)

    def send(self, method: str, **params) -> dict:
        """The answer to a command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while (answer := json.loads(self.socket.recv())).get("id") != self.number:
            self.events.append(answer)
        if "navigated" in answer.get("error", {}).get("message", ""):
            return self.send(method, **params)  # ask the page that this one led to
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def evaluate(self, expression: str):
        """The value of an expression in the page; a promise's value once it is kept."""
        options = {"awaitPromise": True, "returnByValue": True}
        result = self.send("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in result, (expression, result)
        return result["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page, or in the one that it leads to."""
        end = time.monotonic() + SECONDS
        while self.evaluate(condition) is not True:
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def check(self, call: str) -> list[str]:
        """The faults that a function of page_checks.js finds in the page."""
        return self.evaluate(f"{{{CHECKS}; {call}}}")

    def judged_by_axe(self) -> list[str]:
        """What axe finds wrong with the page that is open."""
        rules = files("axe_playwright_python").joinpath("axe.min.js").read_text()
        self.evaluate(f"{rules}; 0")
        return self.check("violations()")

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window so large, in CSS pixels."""
        size = {"width": width, "height": height}
        size |= {"deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def open(self, address: str) -> None:
        """Load a page and wait until its formulas are set."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")
        self.evaluate("window.MathJax?.startup.promise.then(() => true)")

    def wait_for(self, method: str) -> None:
        """Wait until this has happened since the events were last cleared."""
        while not any(event["method"] == method for event in self.events):
            self.events.append(json.loads(self.socket.recv()))

    def press(self, key: str) -> None:
        """Press a key in what has the focus."""
        event = {"key": key, "windowsVirtualKeyCode": KEYS[key]}
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, **event)

    def enter(self, name: str, value: str | float) -> None:
        """Choose in a field of the page."""
        self.evaluate(
            f"""(() => {{
              const field = document.getElementById({name!r});
              field.value = {json.dumps(str(value))};
              for (const kind of ["input", "change"])
                field.dispatchEvent(new Event(kind, {{bubbles: true}}));
            }})()"""
        )

    def text(self, name: str) -> str:
        """What an element of the page says."""
        return self.evaluate(f"document.getElementById({name!r}).textContent")

    def requested(self) -> list[str]:
        """Addresses that the page asked for."""
        asked = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def complaints(self) -> list[str]:
        """Errors that the page threw or logged, and requests that failed."""
        found = []
        for event in self.events:
            match event["method"], event["params"]:
                case (
                    ("Runtime.exceptionThrown", _)
                    | ("Runtime.consoleAPICalled", {"type": "error"})
                    | ("Log.entryAdded", {"entry": {"level": "error"}})
                    | ("Network.loadingFailed", {"canceled": False})
                ):
                    found.append(json.dumps(event["params"]))
        return found
