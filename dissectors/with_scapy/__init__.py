# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Everything that imports scapy: the layer for people who craft packets, and sockets that capture.

May import `tcp`, `remoting`, `live`, `findings` and `ports`; only the command line's live capture
imports it.
scapy is GPL-2.0-only: see NOTICE beside this file.
"""
