#!/usr/bin/env bash
# Counts the words of files; it's a small program.
set -euo pipefail

usage() {
    cat <<'END'
usage: words.sh FILE...
  "quotes" and $variables stay as they are
END
    exit 2
}

[ $# -gt 0 ] || usage
total=0
for file in "$@"; do
    if [[ ! -f $file ]]; then
        echo "no such file: $file" >&2
        continue
    fi
    count=$(wc -w < "$file")
    total=$((total + count))
    printf '%s %d\n' "$file" "$count"
done
while read -r line; do
    case $line in
        *'#'*) echo 'a hash' ;;
        *) echo "other: ${line#prefix}" ;;
    esac
done < list.txt
cat <<-EOF > out.txt
	total: $total
	EOF
