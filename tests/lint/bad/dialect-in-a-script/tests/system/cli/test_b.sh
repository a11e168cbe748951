#!/bin/sh
# Speaks TAP.
