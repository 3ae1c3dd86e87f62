"""Look at the built documentation in a browser: `python -m tools.browser_check [FOLDER] [--all]`, as `make docs` does.

Chromium opens the pages at the width of a telephone and of a desk, in light and dark colours. The check reports:

- a page or a part of it that is wider than the window, and pages without words;
- errors on the console, and images that do not load;
- text with too little contrast in the colours that the browser computes (WCAG 2.2, success criterion 1.4.3);
- a search without results.

The browser fetches nothing from other hosts. Without --all, a folder of many pages is sampled evenly. Without Chromium
the check prints a note and passes. `--shots FOLDER page.html …` stores pictures of pages instead.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import functools
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tools.site_check import BUILT, contrast

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
VIEWS = ((1280, "light"), (1280, "dark"), (390, "dark"), (390, "light"))
LEAST_CONTRAST, LEAST_CONTRAST_OF_LARGE_TEXT = 4.5, 3.0
LEAST_WORDS = 8
"""Of a page, its title included."""
SAMPLE = 12
"""Checked pages of one folder, without --all, if it has more than ALL_OF."""
ALL_OF = 100
PATIENCE = 30.0
"""Seconds that the browser has for one answer."""
STILL = """addEventListener("DOMContentLoaded", () => {
  const sheet = document.createElement("style");
  sheet.textContent = "*, ::before, ::after { transition: none !important; animation: none !important }";
  document.head.append(sheet);
});"""
"""The browser computes fading colours as half-way; without transitions they are the final ones."""
LOOK = (Path(__file__).parent / "browser_page.js").read_text(encoding="utf-8")
SEARCHED = "vmap"
RESULTS = "[...document.querySelectorAll('#search-results li')].map((one) => one.innerText)"


class NoBrowser(Exception):
    """No Chromium is installed, or what has its name is none."""


class Browser:
    """One Chromium with one tab, controlled by the DevTools protocol over two pipes."""

    def __init__(self, program: str, profile: Path) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()

        def take_places() -> None:  # the browser reads from 3 and writes to 4
            inside = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (requests, answers)]
            for number, one in enumerate(inside, start=3):
                os.dup2(one, number)

        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=quiet, stdout=quiet, stderr=quiet, close_fds=False, preexec_fn=take_places
        )
        os.close(requests)
        os.close(answers)
        self._numbers = itertools.count(1)
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None

    def attach(self) -> None:
        """Take the tab that the browser opened with."""
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=STILL)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol; earlier events wait in a list."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        try:
            os.write(self._requests, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise NoBrowser("what is installed as Chromium ended at once") from None
        answer = self._wait(lambda one: one.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            *complete, self._rest = self._rest.split(b"\0")
            for i, text in enumerate(complete):
                message = json.loads(text)
                if is_it(message):
                    self._rest = b"\0".join([*complete[i + 1 :], self._rest])
                    return message  # type: ignore[no-any-return]
                self.events.append(message)
            self._rest += self._read()

    def _read(self) -> bytes:
        if not select.select([self._answers], [], [], PATIENCE)[0]:
            raise TimeoutError(f"the browser was silent for {PATIENCE:.0f} seconds")
        if not (data := os.read(self._answers, 1 << 20)):
            raise NoBrowser("what is installed as Chromium ended at once")
        return data

    def open(self, address: str) -> None:
        """Load a page to its end; `events` are then those of this page."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        if not any([event.get("method") == "Page.loadEventFired" for event in self.events]):
            self.events.append(self._wait(lambda one: one.get("method") == "Page.loadEventFired"))

    def show(self, width: int, scheme: str) -> None:
        """Set the width of the window and the colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self, is_whole: bool) -> bytes:
        """A PNG of the window, or of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=is_whole)["data"])

    def close(self) -> None:
        """End the browser."""
        os.close(self._requests)
        os.close(self._answers)
        self._process.terminate()
        self._process.wait()


class _Files(SimpleHTTPRequestHandler):
    """The files of a folder, without a word on the terminal."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which this machine serves a folder, only to itself."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def started(program: str | None = None) -> Iterator[Browser]:
    """A running browser: of the given name, or the first installed one; NoBrowser if there is none."""
    found = program or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoBrowser(f"none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(found, Path(profile))
        try:
            browser.attach()
            yield browser
        finally:
            browser.close()


def pages(folder: Path, every: bool) -> list[str]:
    """The pages of a folder, by path: SAMPLE of those that share a folder with more than ALL_OF, or every one."""
    found: list[str] = []
    listed = sorted(path.relative_to(folder) for path in folder.rglob("*.html") if path.parts[-2] != "_static")
    by_folder: dict[str, list[str]] = {}
    for path in listed:
        kind = "_modules" if path.parts[0] == "_modules" else path.parent.as_posix()
        by_folder.setdefault(kind, []).append(path.as_posix())
    for names in by_folder.values():
        few = len(names) <= ALL_OF or every
        found += names if few else [names[i * len(names) // SAMPLE] for i in range(SAMPLE)]
    return found


def problems(folder: Path, names: list[str], browser: Browser) -> Iterator[str]:
    """The faults of the named pages of a folder, a line each; two colours of many pages appear once."""
    weak: set[tuple[str, str]] = set()
    with served(folder.resolve()) as address:
        for name in names:
            yield from [f"{name}: {text}" for text in dict.fromkeys(_of_page(browser, address, name, weak))]
        if (folder / "searchindex.js").exists():
            yield from _of_search(browser, address)


def _of_page(browser: Browser, address: str, name: str, weak: set[tuple[str, str]]) -> Iterator[str]:
    browser.show(*VIEWS[0])
    browser.open(address + name)
    yield from _of_console(browser.events, address)
    for width, scheme in VIEWS:
        browser.show(width, scheme)
        seen = browser.evaluate(LOOK)
        if seen["words"] < LEAST_WORDS:
            yield f"it has {seen['words']} words and no more"
        yield from [f"at {width} pixels, {text}" for text in seen["overflow"]]
        yield from [f"the image {source} does not load" for source in seen["images"]]
        for pair in seen["pairs"]:
            front, back = _hexadecimal(pair["front"]), _hexadecimal(pair["back"])
            least = LEAST_CONTRAST_OF_LARGE_TEXT if pair["is_large"] else LEAST_CONTRAST
            if (ratio := contrast(front, back)) < least and (front, back) not in weak:
                weak.add((front, back))
                yield f"{front} on {back} has a contrast of {ratio:.2f}: {pair['name']}"


def _of_console(events: list[dict[str, Any]], address: str) -> Iterator[str]:
    """Errors of the page itself, without those of other hosts."""
    for event in events:
        given = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                yield f"error on the console: {details.get('exception', {}).get('description', details['text'])}"
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "assert"):
                yield f"error on the console: {' '.join([str(one.get('value', '')) for one in given['args']])}"
            case "Log.entryAdded" if given["entry"]["level"] == "error":
                entry = given["entry"]
                if urlsplit(entry.get("url", address)).netloc == urlsplit(address).netloc:
                    yield f"error on the console: {entry['text']} {entry.get('url', '')}"


def _of_search(browser: Browser, address: str) -> Iterator[str]:
    browser.show(*VIEWS[0])
    browser.open(f"{address}search.html?q={SEARCHED}")
    end = time.monotonic() + PATIENCE
    found: list[str] = []
    while not any([one.split()[:1] == [f"func.{SEARCHED}"] for one in found]) and time.monotonic() < end:
        time.sleep(0.1)
        found = browser.evaluate(RESULTS)[:5]  # results arrive one by one, best first
        if len(found) == 5:
            break
    if not any([one.split()[:1] == [f"func.{SEARCHED}"] for one in found]):
        yield f"search.html: {SEARCHED} does not find func.{SEARCHED} among the first five, but {found}"


def _hexadecimal(channels: list[float]) -> str:
    return "#" + "".join([f"{round(one):02x}" for one in channels])


def take_shots(folder: Path, names: list[str], target: Path, browser: Browser) -> None:
    """Store pictures of pages at each width and in each colours."""
    target.mkdir(parents=True, exist_ok=True)
    with served(folder.resolve()) as address:
        for name in names:
            browser.open(address + name)
            for width, scheme in VIEWS:
                browser.show(width, scheme)
                time.sleep(0.2)
                file = f"{name.replace('/', '-').partition('.html')[0]}-{width}-{scheme}.png"
                (target / file).write_bytes(browser.picture(is_whole=False))


def main(arguments: list[str] | None = None) -> int:
    """Print the faults; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.browser_check", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=BUILT)
    parser.add_argument("--all", action="store_true", help="look at every page, not at a sample of large folders")
    parser.add_argument("--shots", nargs="+", metavar=("FOLDER", "PAGE"), help="store pictures of pages instead")
    given = parser.parse_args(arguments)
    start = time.monotonic()
    names = pages(given.folder, given.all)
    try:
        with started() as browser:
            if given.shots:
                take_shots(given.folder, given.shots[1:], Path(given.shots[0]), browser)
                return 0
            found = list(problems(given.folder, names, browser))
    except NoBrowser as reason:
        print(f"the pages were not opened in a browser: {reason}")
        return 0
    seconds = time.monotonic() - start
    print("\n".join(found) or f"{len(names)} pages opened in a browser in {seconds:.0f} s, nothing to mend")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
