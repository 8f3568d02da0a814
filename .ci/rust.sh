# Shell functions about Rust for the other scripts. Source it with sh in the root of the repository.

# Prints the reason why this machine cannot build the Rust crates, or nothing if it can.
why_no_rust() {
    command -v cargo >/dev/null 2>&1 || { echo "no cargo on PATH"; return; }
    has=$(rustc --version 2>/dev/null) || { echo "cargo is on PATH, a working rustc is not"; return; }
    has=${has#rustc } has=${has%%[ -]*}
    needs=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' simcore/Cargo.toml)
    oldest=$(printf '%s\n%s\n' "$has" "$needs" | sort -t . -k 1,1n -k 2,2n -k 3,3n | head -n 1)
    [ "$oldest" = "$needs" ] || [ "$has" = "$needs" ] || echo "Rust $has is too old, $needs or newer is needed"
}

# Succeeds if it is an error not to build the crates.
native_is_required() { [ "${PERIPETY_REQUIRE_NATIVE:-0}" = 1 ]; }
