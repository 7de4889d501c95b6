"""Pages in a browser without a screen."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Comes first in the page, so that it sees every error.
WATCH = "<script>window.errors = []; window.onerror = (message) => void errors.push(message);</script>"

ANSWER = """<script>
(() => {{
  const t = window.anabranchTimeline, element = (id) => document.getElementById(id);
  const pointer = (type, at) => {{
    const area = element("chart").getBoundingClientRect();
    const place = {{ clientX: area.left + at.x, clientY: area.top + at.y }};
    element("chart").dispatchEvent(new PointerEvent(type, {{ ...place, bubbles: true }}));
  }};
  const key = (key) => element("lanes").dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
  const tip = () => (element("tip").hidden ? null : element("tip").textContent);
  let answer;
  try {{ answer = (() => {{ {script} }})(); }} catch (error) {{ errors.push(String(error)); }}
  const result = document.createElement("pre");
  result.id = "answer";
  result.hidden = true;
  result.textContent = JSON.stringify({{ answer, errors, loaded: performance.getEntriesByType("resource").length }});
  document.body.append(result);
}})();
</script>"""


class Browser:
    """Opens pages and asks them with a script, the body of a function."""

    def __init__(self, folder) -> None:
        self.folder = folder

    def ask(self, page: str, script: str, size=(1200, 600), seconds=50):
        """Return what a script returns in a page.

        The script has `t`, what the page shows to the outside; `pointer(type, at)` and `key(key)`, to move and press;
        `tip()`, the text beside the pointer.
        """
        if BROWSER is None:
            pytest.skip("there is no chromium, chromium-browser or google-chrome on PATH")
        file = self.folder / "page.html"
        page = page.replace("<head>", f"<head>{WATCH}", 1)
        file.write_text(page.replace("</body>", ANSWER.format(script=script) + "</body>"), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        options += [f"--user-data-dir={self.folder / 'profile'}", f"--window-size={size[0]},{size[1]}"]
        done = subprocess.run(
            [BROWSER, *options, "--dump-dom", file.as_uri()],
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )
        found = re.search(r'<pre id="answer" hidden="">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found, done.stderr
        answer = json.loads(unescape(found[1]))
        assert (answer["errors"], answer["loaded"]) == ([], 0)
        assert not re.findall(r"^.*CONSOLE.*$", done.stderr, re.MULTILINE)
        return answer["answer"]


@pytest.fixture
def browser(tmp_path):
    return Browser(tmp_path)
