# SPDX-License-Identifier: Apache-2.0
"""The image of Dockerfile: how it is built, and what runs in it."""
