//! The credentials of the person's settings, with the values that commands get of them.

use crate::config::dirs::Env;
use crate::config::settings;
use crate::files::{self, Limit, WorkspaceFiles};
use crate::protocol::{Credential, OutsideAccess, OutsidePath};
use crate::sandbox::{self, CommandView, Isolation, Level, UserPaths};
use crate::scope::Permission;
use crate::text::SafeText;
use crate::tools::outside::CommandNeeds;
use crate::tools::secret_cut::{SecretCut, Secrets};
use crate::tools::{Context, guard};
use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The beginning of a word of `needs` that names one.
pub const PREFIX: &str = "credential:";
/// The Pod's directory of temporary files, as its commands see it.
const TMP: &str = "/tmp";
/// The variable with the socket of the person's ssh agent.
const AGENT: &str = "SSH_AUTH_SOCK";
/// The keys of hosts: that file of the person, below the home directory, that of this machine, and the most bytes of each.
const KNOWN_HOSTS: &str = ".ssh/known_hosts";
const KNOWN_HOSTS_OF_MACHINE: &str = "/etc/ssh/ssh_known_hosts";
const MOST_OF_HOSTS: u64 = 1024 * 1024;
/// Variables with directories from which programs load code, or with options that name such code.
const SEARCHED: [&str; 16] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PERL5LIB",
    "RUBYLIB",
    "GEM_HOME",
    "NODE_PATH",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "GOFLAGS",
    "MAKEFLAGS",
    "RUSTFLAGS",
];

/// The credentials that commands of a Pod may ask for, each by its name.
#[derive(Clone, Default)]
pub struct Credentials {
    all: BTreeMap<String, Credential>,
    /// The variables of all of them that are set.
    values: Env,
    secrets: Secrets,
    /// The socket of the person's ssh agent.
    agent: Option<PathBuf>,
}

impl std::fmt::Debug for Credentials {
    /// Without the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all.values()).finish()
    }
}

/// Whether a variable may hold a secret value. Others name directories and files, such as KUBECONFIG, which stay hidden by
/// that, or have a program start another one.
pub fn may_be_a_credential(variable: &str) -> bool {
    let names_place = || sandbox::place_variables().any(|named| named == variable);
    let starts = ["PATH", "HOME", "SHELL", "ENV", "BASH_ENV", AGENT];
    let changes_git = variable.starts_with("GIT_")
        && !["_TOKEN", "_PASSWORD", "_KEY"].iter().any(|end| variable.ends_with(end));
    !starts.contains(&variable)
        && !SEARCHED.contains(&variable)
        && !variable.starts_with("LD_")
        && !changes_git
        && !names_place()
}

impl Credentials {
    /// The credentials of the settings, with their values in this environment.
    pub fn of(settings: &BTreeMap<String, settings::Credential>, env: &Env) -> Self {
        let agent = env.get(AGENT).filter(|path| !path.is_empty()).map(PathBuf::from);
        let mut found = Self { agent, ..Self::default() };
        for (name, settings::Credential { env: variables, ssh_agent }) in settings {
            for variable in variables.iter().filter(|variable| may_be_a_credential(variable)) {
                let Some(value) = env.get(variable).filter(|value| !value.is_empty()) else {
                    continue;
                };
                crate::trace::secrets::register(value);
                found.secrets.add(name, value);
                found.values.insert(variable.clone(), value.clone());
            }
            let (env, ssh_agent) = (variables.clone(), *ssh_agent);
            let credential = Credential { name: name.clone(), env, ssh_agent };
            found.all.insert(name.clone(), credential);
        }
        found
    }

    /// The credentials of these names, if a call can get them; the error is a sentence for the model.
    pub fn find(&self, names: &[String], ctx: &Context) -> Result<Vec<Credential>, String> {
        let is_apart = ctx.isolation == Isolation::Namespaces && ctx.landlock > 0;
        if let (Some(name), false) = (names.first(), is_apart) {
            return Err(format!(
                "needs {PREFIX}{name} cannot be granted on this machine: without namespaces and Landlock, which yoi doctor says \
                 more about, other commands could read it; leave this step to the person"
            ));
        }
        names.iter().map(|name| self.one(name)).collect()
    }

    fn one(&self, name: &str) -> Result<Credential, String> {
        let Some(credential) = self.all.get(name) else {
            let known: Vec<String> =
                self.all.keys().map(|name| format!("{PREFIX}{name}")).collect();
            let known = match known.is_empty() {
                true => "config.toml of the person has none".to_owned(),
                false => format!("there are {}", known.join(", ")),
            };
            return Err(format!("no credential is named {}: {known}", SafeText::quoted(name)));
        };
        let Credential { env, ssh_agent, .. } = credential;
        if env.is_empty() && !ssh_agent {
            return Err(format!(
                "needs {PREFIX}{name} gives nothing: [credential.{name}] in config.toml has neither env nor ssh_agent; tell the person"
            ));
        }
        if let Some(variable) = env.iter().find(|variable| !may_be_a_credential(variable)) {
            return Err(format!(
                "needs {PREFIX}{name} cannot be granted: {variable} names a place or changes how programs start, and is no \
                 secret value; tell the person, who can name another variable in config.toml"
            ));
        }
        match self.unset(credential).next() {
            None => Ok(credential.clone()),
            Some(variable) => Err(format!(
                "needs {PREFIX}{name} cannot be granted: {variable} is not set where yoi was started; tell the person, who can \
                 set it there and open this pod again"
            )),
        }
    }

    /// The variables of a credential that are not set.
    fn unset<'a>(&'a self, credential: &'a Credential) -> impl Iterator<Item = &'a str> {
        let variables = credential.env.iter().map(String::as_str);
        let agent = (credential.ssh_agent && self.agent.is_none()).then_some(AGENT);
        variables.filter(|variable| !self.values.contains_key(*variable)).chain(agent)
    }

    /// The socket of the person's ssh agent, if one of these reaches it. Reads the disk.
    pub fn agent(
        &self,
        granted: &[Credential],
        ctx: &Context,
    ) -> Result<Option<OutsidePath>, String> {
        let named = self.agent.as_ref().filter(|_| granted.iter().any(|one| one.ssh_agent));
        let Some(named) = named else { return Ok(None) };
        let refused = |why: String| format!("the ssh agent of {AGENT} cannot be reached: {why}");
        let path = files::canonical(named);
        let path = path.map_err(|error| refused(format!("{}: {error}", named.display())))?;
        if !path.metadata().is_ok_and(|meta| meta.file_type().is_socket()) {
            return Err(refused(format!("{} is no socket", path.display())));
        }
        match guard::closed(ctx, &path, Permission::Write) {
            Some(why) => Err(refused(why)),
            None => Ok(Some(OutsidePath { path, access: OutsideAccess::Socket })),
        }
    }

    /// Puts the values of the granted credentials into the environment of a command. Programs are then searched for only where the Pod
    /// cannot put another one of the same name.
    pub fn give(&self, needs: &CommandNeeds, view: &CommandView, env: &mut Env) {
        let CommandNeeds { credentials: granted, agent, .. } = needs;
        if granted.is_empty() {
            return;
        }
        for searched in SEARCHED {
            let Some(list) = env.get(searched) else { continue };
            let kept = list.split(':').filter(|dir| is_kept(Path::new(dir), view));
            let kept = kept.collect::<Vec<_>>().join(":");
            // Some programs search the current directory where the list is empty.
            match kept.is_empty() {
                true => env.remove(searched),
                false => env.insert(searched.to_owned(), kept),
            };
        }
        let variables = granted.iter().flat_map(|credential| &credential.env);
        let values = variables.filter_map(|name| self.values.get_key_value(name));
        env.extend(values.map(|(name, value)| (name.clone(), value.clone())));
        let agent = agent.iter().map(|agent| (AGENT.to_owned(), agent.path.display().to_string()));
        env.extend(agent);
    }

    /// Takes the values out of output.
    pub fn cut(&self) -> SecretCut {
        self.secrets.cut()
    }

    /// A text without the values.
    pub fn cut_text(&self, text: String) -> String {
        self.secrets.cut_text(text)
    }

    /// What a command that lacked a credential may ask for besides these; `None` where there is nothing.
    pub fn hint(&self, had: &[Credential]) -> Option<String> {
        let others = self.all.values().filter(|one| !had.contains(one));
        let words: Vec<String> = others.map(|one| format!("\"{PREFIX}{}\"", one.name)).collect();
        (!words.is_empty()).then(|| {
            format!(
                "[if a token or key of the person would help, run it with needs: [\"network\", {}] and a reason]",
                words.join(" or ")
            )
        })
    }

    /// What commands may ask for, each a sentence.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.all.values().map(|credential| {
            let unset: Vec<&str> = self.unset(credential).collect();
            let unset = match unset.is_empty() {
                true => String::new(),
                false => format!("; not set: {}", unset.join(", ")),
            };
            format!("a command that you allow gets the credential {credential}{unset}")
        })
    }
}

/// The keys of the hosts that the person knows, where ssh of any home directory reads them. Blocking.
pub fn known_hosts(ctx: &Context) -> (PathBuf, String) {
    let own = (UserPaths { env: &ctx.env }).home().map(|home| home.join(KNOWN_HOSTS));
    let read = |path: PathBuf| {
        let real = files::canonical(&path).ok()?;
        let found = WorkspaceFiles::of(real.parent()?).read(&real, Limit::head(MOST_OF_HOSTS));
        Some(String::from_utf8_lossy(&found.ok()?.bytes).into_owned())
    };
    let texts = own.into_iter().chain([KNOWN_HOSTS_OF_MACHINE.into()]).filter_map(read);
    (KNOWN_HOSTS_OF_MACHINE.into(), texts.collect::<Vec<_>>().join("\n"))
}

/// Whether a directory of programs is one that the Pod cannot write.
fn is_kept(dir: &Path, view: &CommandView) -> bool {
    let real = files::canonical(dir);
    let is_of_pod = |dir: &Path| dir.starts_with(TMP) || view.level(dir) == Level::Write;
    dir.is_absolute() && ![dir, real.as_deref().unwrap_or(dir)].into_iter().any(is_of_pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::ViewInputs;
    use crate::scope::{Rule, Scope};

    #[test]
    fn a_command_with_a_credential_finds_no_program_that_its_pod_can_put_there() {
        let setting = settings::Credential { env: vec!["GH_TOKEN".into()], ssh_agent: false };
        let env = |list: &[(&str, &str)]| -> Env {
            list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let person = env(&[("GH_TOKEN", "value-1234"), ("HOME", "/h")]);
        let all = Credentials::of(&BTreeMap::from([("github".into(), setting)]), &person);
        assert!(!format!("{all:?}").contains("value"), "no value is shown");
        let scope = Scope::new(vec![Rule::new("/w", Permission::Write)]);
        let view = CommandView::new(&ViewInputs::new(&scope, UserPaths { env: &person }));
        let path = "/usr/bin:/w/.venv/bin:bin::/tmp/x:/opt/x";
        let of_command = env(&[("PATH", path), ("PYTHONPATH", "/w/lib"), ("LANG", "C")]);
        let given = |credentials: Vec<Credential>| {
            let mut env = of_command.clone();
            let needs = CommandNeeds { credentials, ..CommandNeeds::default() };
            all.give(&needs, &view, &mut env);
            env
        };
        assert_eq!(given(Vec::new()), of_command);
        let granted = given(vec![all.one("github").unwrap()]);
        let expected = [("GH_TOKEN", "value-1234"), ("LANG", "C"), ("PATH", "/usr/bin:/opt/x")];
        assert_eq!(granted, env(&expected));
    }
}
