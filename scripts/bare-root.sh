#!/bin/sh
# What a newcomer does on a machine without compiler and Rust: in a new root of Debian 12 with Python alone, installs
# the wheel of `scripts/build-wheels.sh` with OpenCL from pip, and runs the tutorial, the command line and its first
# kernel. Says how many seconds that took. Needs root and `debootstrap`; `BARE_ROOT` keeps the root for later runs.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(find "$root/target/published" -name '*x86_64.whl' | head -n 1)
[ -n "$wheel" ] || { echo "bare-root: no wheel; scripts/build-wheels.sh makes it" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || { echo "bare-root: call it as root, for a root of its own" >&2; exit 1; }
command -v debootstrap >/dev/null || apt-get install -y -q --no-install-recommends debootstrap >/dev/null
bare=${BARE_ROOT:-$(mktemp -d)}
if [ ! -x "$bare/usr/bin/python3" ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$bare" "$mirror" >/dev/null
fi
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [ ! -e "$file" ] || cp "$file" "$bare$file"
done
[ ! -d /usr/local/share/ca-certificates ] || cp -r /usr/local/share/ca-certificates "$bare/usr/local/share/"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$bare/etc/ssl/certs/"
home=$bare/home/newcomer
rm -rf "$home"
mkdir -p "$home"
cp "$wheel" "$root/python/examples/05_tutorial.py" "$root/examples/row_sums.kingpost" "$home"
sed -i 's/device="c", //' "$home/05_tutorial.py" # the default, which is OpenCL there
cat >"$home/newcomer.sh" <<'INSIDE'
set -eu
for tool in cc gcc clang cargo rustc; do ! command -v "$tool" || { echo "bare-root: $tool is there" >&2; exit 1; }; done
cd
begin=$(date +%s)
python3 -m venv venv
. venv/bin/activate
pip install --quiet --disable-pip-version-check "$(ls ./*.whl)[opencl,forms]"
installed=$(date +%s)
python 05_tutorial.py
kingpost devices
kingpost run row_sums.kingpost --param n=1000 --param m=1000 --device opencl --no-time
end=$(date +%s)
echo "installed in $((installed - begin)) s, the rest $((end - installed)) s, in all $((end - begin)) s"
[ $((end - begin)) -le 60 ] || { echo "bare-root: more than 60 s" >&2; exit 1; }
INSIDE
# what every machine has: processes, devices, and what the system says of its processors
settings=$(env | grep -i '^\(pip_cert\|https\{0,1\}_proxy\|no_proxy\|ssl_cert_file\|requests_ca_bundle\)=' || true)
# shellcheck disable=SC2086,SC2016 # a word a setting; expanded inside
unshare --mount env -i HOME=/home/newcomer PATH=/usr/sbin:/usr/bin:/sbin:/bin $settings BARE="$bare" sh -c '
    mount -t proc proc "$BARE/proc" && mount --rbind /sys "$BARE/sys" && mount --rbind /dev "$BARE/dev" &&
    exec chroot "$BARE" sh /home/newcomer/newcomer.sh'
[ -n "${BARE_ROOT:-}" ] || rm -rf "$bare"
