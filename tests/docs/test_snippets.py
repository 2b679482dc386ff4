"""Code that documents show and no example runs does what they say."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, WEBHOOKS_GUIDE, blocks

VECTORS = ROOT / "sdk" / "vectors.json"
JUDGE = """
import { readFileSync } from "node:fs";
import { isDelivery } from "./snippet.mjs";
const lowered = (headers) => Object.fromEntries(
  Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
const judged = JSON.parse(readFileSync(0)).map(
  ({ headers, body, secret, now }) => isDelivery(lowered(headers), Buffer.from(body), secret, now));
console.log(JSON.stringify(judged));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="the snippet needs Node.js")
def test_the_receiver_in_javascript_judges_every_vector_as_it_must(tmp_path: Path) -> None:
    (snippet,) = (block.text for block in blocks(WEBHOOKS_GUIDE) if block.language == "js")
    (tmp_path / "snippet.mjs").write_text(snippet)
    (tmp_path / "judge.mjs").write_text(JUDGE)
    vectors = [one for one in json.loads(VECTORS.read_text())["vectors"] if isinstance(one["headers"], dict)]
    done = subprocess.run(
        ["node", "judge.mjs"],
        cwd=tmp_path,
        input=json.dumps(vectors),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    judged = zip(vectors, json.loads(done.stdout), strict=True)
    assert len(vectors) > 20
    wrong = [one["name"] for one, taken in judged if taken is not (one["signatureRefusedFor"] is None)]
    assert wrong == []
