#!/bin/sh
# The smallest agent: says in every turn that it does nothing. Answers are counted, because their ids are 1, 2, 3 ...
n=0
while read -r line; do
  case "$line" in
    '{"type":"hello"'*) echo '{"type":"hello","protocol":1,"name":"silent"}' ;;
    '{"type":"end"'*) exit 0 ;;
    *) n=$((n + 1)); echo "{\"type\":\"answer\",\"id\":$n,\"content\":\"No further action.\"}" ;;
  esac
done
