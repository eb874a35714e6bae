# SPDX-License-Identifier: Apache-2.0
"""The image's HEALTHCHECK: exit code 0 when the server answers /health with 200, else 1.

The server decodes one token for it, so a hung scheduler is seen too.
"""

from __future__ import annotations

import http.client
import ssl
import sys

from .health import address

_PATIENCE_S = 18.0


def check() -> str | None:
    """None when the server is healthy, else what was found."""
    scheme, host, port = address()
    if scheme == "https":
        # The certificate is for the name that clients use, and this never leaves the container.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, port, timeout=_PATIENCE_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
        return None if status == 200 else f"status {status}"
    except (OSError, http.client.HTTPException) as problem:
        return repr(problem)
    finally:
        connection.close()


if __name__ == "__main__":
    found = check()
    print("healthy" if found is None else f"health: expected status 200, found {found}")
    sys.exit(found is not None)
