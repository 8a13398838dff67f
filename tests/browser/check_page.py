#!/usr/bin/env python3
"""Opens pages in headless Chromium and checks what a reader would notice.

usage: check_page.py [--screenshots DIR] PAGE...

For every page, at 1280 and 390 px, light and dark: no message on the console, no exception, no request but for the page itself, and
nothing wider than the window. On paper nothing may be wider than the sheet, not even what scrolls on a screen. --screenshots DIR writes PAGE-WIDTH-SCHEME.png of the whole page.
Exit code 77 (skipped) where there is no Chromium.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


class Browser:
    """Chromium over its debugging pipe: JSON messages that end in a NUL, in on descriptor 3, out on 4."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()

        def take_pipe():
            # Above what they are copied to, so that neither copy overwrites the other's source.
            reading, writing = (os.dup(fd) for fd in (to_browser, from_browser))
            while reading <= 4 or writing <= 4:
                reading, writing = os.dup(reading), os.dup(writing)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=take_pipe, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events = 0, b"", []

    def receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.inp, 1 << 16)
            if not data:
                raise RuntimeError("Chromium ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return
            self.events.append(self.receive())

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=20)


def complaints(events, url):
    """What went wrong while a page was loaded."""
    found = []
    for event in events:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            found.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            found.append("exception: " + parameters["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            found.append("console: " + parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            asked = parameters["request"]["url"]
            if asked != url and not asked.startswith("data:"):
                found.append("request: " + asked)
    return found


# Elements that stick out of the window, but for those inside something that scrolls by itself, if it may.
STICKING_OUT = """((mayScroll) => {
  const width = document.documentElement.clientWidth, out = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (mayScroll && e.closest('.wide') && !e.classList.contains('wide')) continue;
    if (e.getBoundingClientRect().right > width + 1) out.push(e.tagName + '.' + e.className);
  }
  return JSON.stringify([document.documentElement.scrollWidth, width, out.slice(0, 5)]);
})(%s)"""
SHEET = 700  # px: A4 and letter with margins


def check(browser, page, screenshots):
    url = "file://" + os.path.abspath(page)
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    call = lambda method, **parameters: browser.call(method, session, **parameters)
    for domain in ("Page", "Runtime", "Log", "Network"):
        call(domain + ".enable")
    found = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
            call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.events.clear()
            failure = call("Page.navigate", url=url).get("errorText")
            if failure:
                return [failure]
            browser.wait_for("Page.loadEventFired")
            value = call("Runtime.evaluate", expression=STICKING_OUT % "true")["result"]["value"]
            scroll_width, client_width, out = json.loads(value)
            found += [f"{width} px, {scheme}: {text}" for text in complaints(browser.events, url)]
            if scroll_width > client_width or out:
                found.append(f"{width} px: {scroll_width} px wide, sticking out: {', '.join(out) or 'nothing by itself'}")
            if screenshots:
                image = call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
                name = f"{os.path.splitext(os.path.basename(page))[0]}-{width}-{scheme}.png"
                with open(os.path.join(screenshots, name), "wb") as file:
                    file.write(base64.b64decode(image))
    call("Emulation.setDeviceMetricsOverride", width=SHEET, height=1000, deviceScaleFactor=1, mobile=False)
    call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "light"}])
    scroll_width, _, out = json.loads(
        call("Runtime.evaluate", expression=STICKING_OUT % "false")["result"]["value"])
    if scroll_width > SHEET or out:
        found.append(f"on paper: {scroll_width} px wide, sticking out: {', '.join(out) or 'nothing by itself'}")
    if screenshots:
        image = call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(os.path.join(screenshots, os.path.splitext(os.path.basename(page))[0] + "-paper.png"), "wb") as file:
            file.write(base64.b64decode(image))
    pdf = call("Page.printToPDF", printBackground=True)["data"]
    if len(pdf) < 1000:
        found.append("prints as nothing")
    if screenshots:
        with open(os.path.join(screenshots, os.path.splitext(os.path.basename(page))[0] + ".pdf"), "wb") as file:
            file.write(base64.b64decode(pdf))
    browser.call("Target.closeTarget", targetId=target)
    return found


def main(arguments):
    screenshots = None
    if arguments[:1] == ["--screenshots"] and len(arguments) > 1:
        screenshots, arguments = arguments[1], arguments[2:]
        os.makedirs(screenshots, exist_ok=True)
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print("skipped: no chromium on this machine (apt-get install chromium)")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        for page in arguments:
            found = check(browser, page, screenshots)
            print(f"{page}: " + ("ok" if not found else f"{len(found)} complaints"))
            for text in found:
                print("  " + text)
            failed += bool(found)
        browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
