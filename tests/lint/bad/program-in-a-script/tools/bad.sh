#!/bin/sh
x="$(cat a | jq .b)"
