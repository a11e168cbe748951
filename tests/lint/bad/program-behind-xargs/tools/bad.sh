#!/bin/sh
echo a | xargs -n 1 socat
