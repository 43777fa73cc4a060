use super::*;

fn read_as(program: &str, rest: &[&str], variables: &[(&str, &str)]) -> Result<Settings, String> {
    let name = AzuriteName::of_program(OsStr::new(program)).expect("a name of Azurite");
    let arguments: Vec<OsString> =
        std::iter::once(program).chain(rest.iter().copied()).map(Into::into).collect();
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    read(name, &arguments, &environment).map_err(|error| error.to_string())
}

fn address(listen: &Option<Listen>) -> Option<String> {
    listen.as_ref().map(|listen| listen.address.to_string())
}

#[test]
fn each_name_binds_what_azurite_binds_under_it() {
    let (blob, queue, table) = ("127.0.0.1:10000", "127.0.0.1:10001", "127.0.0.1:10002");
    for (program, expected) in [
        ("/usr/bin/azurite", [Some(blob), Some(queue), Some(table)]),
        ("azurite-blob", [Some(blob), None, None]),
        ("./azurite-queue", [None, Some(queue), None]),
        ("azurite-table.exe", [None, None, Some(table)]),
    ] {
        let settings = read_as(program, &[], &[]).expect(program);
        let bound = [&settings.blob, &settings.queue, &settings.table].map(address);
        assert_eq!(bound, expected.map(|address| address.map(str::to_owned)), "{program}");
        assert_eq!((settings.file, settings.smb, settings.admin), (None, None, None));
    }
    for program in ["holdfast", "azurite-file", "xazurite", ""] {
        assert_eq!(AzuriteName::of_program(OsStr::new(program)), None, "{program}");
    }
}

#[test]
fn every_flag_of_azurite_is_accepted() {
    let settings = read_as(
        "azurite",
        &[
            "-l",
            "/data",
            "-d",
            "/data/debug.log",
            "-L",
            "-s",
            "--blobHost",
            "0.0.0.0",
            "--blobPort",
            "1",
            "--blobKeepAliveTimeout",
            "7",
            "--queueHost",
            "::1",
            "--queuePort",
            "2",
            "--queueKeepAliveTimeout",
            "9",
            "--tableHost=127.0.0.2",
            "--tablePort=0",
            "--tableKeepAliveTimeout",
            "5",
            "--skipApiVersionCheck",
            "--disableProductStyleUrl",
            "--oauth",
            "basic",
            "--cert",
            "c.pem",
            "--key",
            "k.pem",
            "--disableTelemetry",
        ],
        &[],
    )
    .expect("accepted");
    let path = PathBuf::from("/data/holdfast");
    assert_eq!(settings.storage, Storage::Folder { path, durability: Durability::Fsync });
    let bound = [&settings.blob, &settings.queue, &settings.table].map(address);
    assert_eq!(bound.map(Option::unwrap_or_default), ["0.0.0.0:1", "[::1]:2", "127.0.0.2:0"]);
    assert_eq!(settings.limits.idle_timeout, Duration::from_secs(9));
    assert!(!settings.host_style_addresses);
    assert_eq!(settings.bearer, Some(Bearer::Development { assignments: Vec::new() }));
    assert!(settings.copy_sources.key_opens_copy_from_url);
    assert!(settings.tls.is_some());
    assert_eq!(settings.log.debug_file, Some(PathBuf::from("/data/debug.log")));
    assert_eq!(settings.log.filter, "warn");
    let name = AzuriteName::Azurite;
    assert_eq!(settings.announcement, Announcement::Azurite { name, ready_too: false });
}

#[test]
fn flags_without_meaning_are_named_in_one_warning() {
    let settings = read_as(
        "azurite",
        &["--loose", "--skipApiVersionCheck", "--inMemoryPersistence", "--extentMemoryLimit", "64"],
        &[("AZURITE_DB", "mysql://somewhere")],
    )
    .expect("accepted");
    assert_eq!(settings.storage, Storage::Memory);
    let [warning] = settings.warnings.as_slice() else { panic!("{:?}", settings.warnings) };
    for part in ["--loose", "--skipApiVersionCheck", "--extentMemoryLimit", "AZURITE_DB"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert!(!warning.contains("mysql"), "{warning}");
    assert!(read_as("azurite", &[], &[]).expect("accepted").warnings.is_empty());
}

#[test]
fn a_switch_may_have_a_word_after_it_as_in_azurite() {
    for arguments in [&["--silent", "true"][..], &["--silent", "--loose"], &["-sL"], &["-s", "x"]] {
        let settings = read_as("azurite", arguments, &[]).expect("accepted");
        assert_eq!(settings.log.filter, "warn", "{arguments:?}");
    }
}

#[test]
fn the_well_known_key_is_served_anywhere_with_a_warning() {
    let settings = read_as("azurite", &["--blobHost", "0.0.0.0"], &[]).expect("accepted");
    assert!(settings.warnings[0].contains("well-known"), "{:?}", settings.warnings);
    let own = [("AZURITE_ACCOUNTS", "mine:a2V5")];
    let settings = read_as("azurite", &["--blobHost", "0.0.0.0"], &own).expect("accepted");
    assert_eq!((settings.accounts[0].name.as_str(), settings.warnings.len()), ("mine", 0));
}

#[test]
fn what_azurite_refuses_is_refused() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--inMemoryPersistence", "-l", "x"], &["--inMemoryPersistence", "--location"]),
        (&["--extentMemoryLimit", "5"], &["--extentMemoryLimit", "--inMemoryPersistence"]),
        (
            &["--inMemoryPersistence", "--extentMemoryLimit", "-5"],
            &["--extentMemoryLimit", "\"-5\"", "0 or more"],
        ),
        (&["--debug"], &["--debug"]),
        (&["--blobPort", "many"], &["--blobPort", "\"many\"", "65535"]),
        (&["--blobHost", "no such host"], &["--blobHost", "\"no such host\""]),
        (&["--blobKeepAliveTimeout", "x"], &["--blobKeepAliveTimeout", "\"x\"", "seconds"]),
        (&["--oauth", "full"], &["--oauth", "\"full\"", "basic"]),
        (&["--cert", "c.pfx", "--pwd", "p"], &["c.pfx", "PFX", "PEM"]),
        (&["--cert", "c.pem"], &["--cert needs --key"]),
        (&["--fileHost", "x"], &["--fileHost"]),
    ];
    for (arguments, parts) in cases {
        let message = read_as("azurite", arguments, &[]).map(|_| ()).expect_err("refused");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?}: {message}");
        }
    }
    read_as("azurite-blob", &["--queuePort", "1"], &[]).map(|_| ()).expect_err("not its flag");
}

#[test]
fn the_flags_of_holdfast_are_not_those_of_azurite() {
    read_as("azurite", &["--data", "x"], &[]).map(|_| ()).expect_err("refused");
    let settings = read_as("azurite", &[], &[("HOLDFAST_BLOB_PORT", "7")]).expect("accepted");
    assert_eq!(address(&settings.blob).as_deref(), Some("127.0.0.1:10000"));
}

#[test]
fn a_folder_that_azurite_filled_is_told_with_the_command_that_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().to_str().expect("UTF-8");
    let warnings = || read_as("azurite", &["-l", location], &[]).expect("accepted").warnings;
    assert!(warnings().is_empty());
    std::fs::write(folder.path().join("__azurite_db_table__.json"), "{}").expect("written");
    let [warning] = <[String; 1]>::try_from(warnings()).expect("one warning");
    assert!(warning.contains(&format!("holdfast import azurite {location}")), "{warning}");
}

#[test]
fn containers_give_the_host_and_the_admin_port() {
    let variables = [("HOLDFAST_HOST", "0.0.0.0"), ("HOLDFAST_ADMIN_PORT", "7")];
    let settings = read_as("azurite", &["--queueHost", "127.0.0.1"], &variables).expect("accepted");
    assert_eq!(address(&settings.blob).as_deref(), Some("0.0.0.0:10000"));
    assert_eq!(address(&settings.queue).as_deref(), Some("127.0.0.1:10001"));
    assert_eq!(address(&settings.admin).as_deref(), Some("0.0.0.0:7"));
    let wrong = [("HOLDFAST_ADMIN_PORT", "many")];
    let message = read_as("azurite", &[], &wrong).map(|_| ()).expect_err("refused");
    assert!(message.contains("HOLDFAST_ADMIN_PORT") && message.contains("\"many\""), "{message}");
}
