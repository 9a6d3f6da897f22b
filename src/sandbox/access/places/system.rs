//! System directories that every command may read.

/// Programs and libraries, and the processors of the machine.
pub const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/run/current-system",
    "/sys/devices/system",
    "/home/linuxbrew",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman",
    "/var/cache/fontconfig",
    "/var/cache/man",
];

/// Settings that programs need: users, hosts, certificates, languages, the linker. No other file of
/// `/etc` is visible.
pub const ETC: &[&str] = &[
    "/etc/adjtime",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/bash_completion.d",
    "/etc/bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/default/locale",
    "/etc/dpkg",
    "/etc/environment",
    "/etc/ethertypes",
    "/etc/fedora-release",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gcrypt",
    "/etc/gitattributes",
    "/etc/gitconfig",
    "/etc/groff",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/issue",
    "/etc/java-11-openjdk",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/java-25-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/locale.gen",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/lsb-release",
    "/etc/machine-id",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/man_db.conf",
    "/etc/manpath.config",
    "/etc/maven",
    "/etc/mime.types",
    "/etc/nanorc",
    "/etc/networks",
    "/etc/nix",
    "/etc/npmrc",
    "/etc/nsswitch.conf",
    "/etc/openssl",
    "/etc/os-release",
    "/etc/papersize",
    "/etc/passwd",
    "/etc/perl",
    "/etc/php",
    "/etc/pip.conf",
    "/etc/pki",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/redhat-release",
    "/etc/rpc",
    "/etc/rpm",
    "/etc/screenrc",
    "/etc/services",
    "/etc/sgml",
    "/etc/shells",
    "/etc/skel",
    "/etc/ssh/ssh_config",
    "/etc/ssl",
    "/etc/static",
    "/etc/system-release",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/vim",
    "/etc/wgetrc",
    "/etc/xdg",
    "/etc/xml",
    "/etc/zsh",
];

/// DNS configuration, for commands that have the network.
pub const NAMES: &[&str] = &[
    "/etc/resolv.conf",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/mnt/wsl/resolv.conf",
];

/// `/proc` and `/sys`. A command in namespaces gets a `/proc` of its own instead.
pub const KERNEL: &[&str] = &["/proc", "/sys"];

/// Devices that store nothing.
pub const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Whether a path is one of these or is below one.
pub fn of_the_system(path: &std::path::Path) -> bool {
    [SYSTEM, ETC, NAMES, KERNEL].into_iter().flatten().any(|place| path.starts_with(place))
}
