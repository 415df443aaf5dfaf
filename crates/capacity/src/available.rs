//! Bytes that this process may still take, as the system says.

/// Bytes that this process can still allocate and use: what the machine has free, what the group of
/// processes it is in may have (cgroups, versions 2 and 1), and what its own limits leave. None if
/// the system says nothing.
///
/// # Units
/// Bytes. The figure is of the moment: other processes take memory as well.
#[must_use]
pub fn available_memory() -> Option<u64> {
    [machine(), group(), process()].into_iter().flatten().min()
}

fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}

fn group() -> Option<u64> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let files = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    // without a limit the first file holds a word, or a number beyond any memory
    let left = |(limit, used): (&str, &str)| Some(number(limit)?.saturating_sub(number(used)?));
    files.into_iter().filter_map(left).min()
}

/// The limit of the address space (`ulimit -v`) less what is taken.
fn process() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kib: u64 = taken.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory_and_not_all_of_the_address_space() {
        let Some(bytes) = available_memory() else {
            println!("skipped: the system does not say");
            return;
        };
        assert!((1 << 20..1 << 50).contains(&bytes), "{bytes} bytes");
    }
}
