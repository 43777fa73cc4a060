use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn read_with(rest: &[&str], variables: &[(&str, &str)]) -> Result<Settings, String> {
    let arguments: Vec<OsString> =
        std::iter::once("/usr/bin/holdfast").chain(rest.iter().copied()).map(Into::into).collect();
    read(&arguments, &environment(variables)).map_err(|error| error.to_string())
}

fn port(listen: &Option<Listen>) -> Option<u16> {
    listen.as_ref().map(|listen| listen.address.port())
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let settings = read_with(&[], &[]).expect("the defaults");
    let folder = Storage::Folder { path: "./holdfast-data".into(), durability: Durability::Fsync };
    assert_eq!(settings.storage, folder);
    let ports = [
        port(&settings.blob),
        port(&settings.queue),
        port(&settings.table),
        port(&settings.file),
        port(&settings.smb),
        port(&settings.admin),
    ];
    let expected = [10000, 10001, 10002, 10003, 10445, 10099].map(Some);
    assert_eq!(ports, expected);
    assert_eq!(settings.blob.map(|blob| blob.host).as_deref(), Some("127.0.0.1"));
    assert_eq!(settings.accounts, [Account::development()]);
    assert_eq!((settings.tls, settings.bearer, settings.seed), (None, None, None));
    assert_eq!(settings.shutdown_timeout, Duration::from_secs(30));
    assert_eq!(settings.log.format, LogFormat::Text);
    assert_eq!(settings.announcement, Announcement::Ready);
}

#[test]
fn a_bad_value_names_its_origin_itself_and_what_is_allowed() {
    type Case<'case> =
        (&'case [&'case str], &'case [(&'case str, &'case str)], &'case [&'case str]);
    let cases: &[Case<'_>] = &[
        (&["--blob-port", "65536"], &[], &["--blob-port", "\"65536\"", "65535", "off"]),
        (&["--queue-port=-1"], &[], &["--queue-port", "\"-1\""]),
        (&["--table-port", "on"], &[], &["--table-port", "\"on\"", "off"]),
        (&["--host", "no such host"], &[], &["--host", "\"no such host\"", "IP address"]),
        (&["--durability", "fast"], &[], &["--durability", "\"fast\"", "fsync, relaxed"]),
        (&["--memory=maybe"], &[], &["--memory", "\"maybe\"", "true, false"]),
        (&["--log", "holdfast=loud"], &[], &["--log", "\"holdfast=loud\"", "debug"]),
        (&["--log-format", "xml"], &[], &["--log-format", "\"xml\"", "text, json"]),
        (&["--idle-timeout", "0"], &[], &["--idle-timeout", "\"0\"", "1ms"]),
        (&["--idle-timeout", "5 parsecs"], &[], &["--idle-timeout", "500ms"]),
        (&["--shutdown-timeout", "25h"], &[], &["--shutdown-timeout", "24h"]),
        (&["--max-connections", "0"], &[], &["--max-connections", "from 1"]),
        (
            &["--max-connections-per-address", "101%"],
            &[],
            &["--max-connections-per-address", "percentage"],
        ),
        (&["--min-connections-per-service=-1"], &[], &["--min-connections-per-service", "\"-1\""]),
        (&["--max-header-bytes", "1"], &[], &["--max-header-bytes", "from 8192"]),
        (&["--account", "ab:a2V5"], &[], &["--account", "\"ab:(hidden)\"", "3 to 24"]),
        (&["--disabled-account", "other"], &[], &["--disabled-account", "\"other\"", "account"]),
        (&["--copy-source-host", "http://h"], &[], &["--copy-source-host", "\"http://h\"", "HOST"]),
        (&["--copy-source-host", "127.1"], &[], &["--copy-source-host", "\"127.1\"", "HOST"]),
        (&[], &[("HOLDFAST_BLOB_PORT", "x")], &["HOLDFAST_BLOB_PORT", "\"x\"", "65535"]),
        (&[], &[("HOLDFAST_MEMORY", "yes")], &["HOLDFAST_MEMORY", "\"yes\"", "true, false"]),
        (&[], &[("AZURITE_ACCOUNTS", "a:b")], &["AZURITE_ACCOUNTS", "\"a:(hidden)\"", "Base64"]),
        (&[], &[("HOLDFAST_ACCOUNTS", "abc:a2V5;abc:a2V5")], &["HOLDFAST_ACCOUNTS", "twice"]),
    ];
    for (arguments, variables, parts) in cases {
        let message = read_with(arguments, variables).map(|_| ()).expect_err("refused");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?} {variables:?}: {message}");
        }
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--memory", "--data", "x"], &["--memory", "--data"]),
        (&["--tls-cert", "c.pem"], &["--tls-cert", "needs --tls-key"]),
        (&["--tls-key", "k.pem"], &["--tls-key", "needs --tls-cert"]),
        (&["--oauth-issuer", "i"], &["needs --oauth-audience and --oauth-keys"]),
        (&["--oauth-keys", "k"], &["needs --oauth-issuer and --oauth-audience"]),
        (&["--oauth-keys", "k", "--oauth-keys-url", "https://i"], &["one of the two"]),
        (&["--oauth-keys-url", "http://issuer.example/keys"], &["an https URL"]),
        (
            &["--role-assignment", "role=Storage Blob Delegator,account=*,object-id=o"],
            &["needs --oauth-issuer"],
        ),
        (&["--role-assignment", "role=Owner"], &["--role-assignment", "Storage Blob Data Owner"]),
        (
            &["--oauth-development", "--host", "0.0.0.0", "--account", "mine:a2V5"],
            &["--oauth-development", "0.0.0.0", "loopback"],
        ),
        (&["--oauth-development", "--oauth-keys", "k"], &["--oauth-development", "--oauth-keys"]),
        (&["--blob-port", "7", "--admin-port", "7"], &["--admin-port", "--blob-port"]),
    ];
    for (arguments, parts) in cases {
        let message = read_with(arguments, &[]).map(|_| ()).expect_err("refused");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?}: {message}");
        }
    }
}

#[test]
fn the_well_known_key_leaves_loopback_only_when_asked_to() {
    for host in ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"] {
        read_with(&["--host", host], &[]).expect(host);
    }
    for host in ["0.0.0.0", "::", "192.0.2.1"] {
        let message = read_with(&["--host", host], &[]).map(|_| ()).expect_err(host);
        for part in [host, "well-known", "--account", "--allow-well-known-key"] {
            assert!(message.contains(part), "{message}");
        }
        read_with(&["--host", host, "--allow-well-known-key"], &[]).expect(host);
        read_with(&["--host", host, "--account", "mine:a2V5"], &[]).expect(host);
    }
}

#[test]
fn a_service_can_be_off_or_on_any_port() {
    let settings = read_with(&["--blob-port", "0", "--queue-port", "0", "--smb-port", "off"], &[]);
    let settings = settings.expect("allowed");
    assert_eq!((port(&settings.blob), port(&settings.queue)), (Some(0), Some(0)));
    assert_eq!(settings.smb, None);
}

#[test]
fn a_flag_turns_off_what_a_variable_turned_on() {
    let variables = [("HOLDFAST_MEMORY", "true")];
    assert_eq!(read_with(&[], &variables).expect("allowed").storage, Storage::Memory);
    let settings = read_with(&["--memory=false"], &variables).expect("allowed");
    assert!(matches!(settings.storage, Storage::Folder { .. }));
}

#[test]
fn memory_wins_only_over_a_folder_of_lower_rank() {
    let settings = read_with(&["--memory"], &[("HOLDFAST_DATA", "/data")]).expect("allowed");
    assert_eq!(settings.storage, Storage::Memory);
    let message = read_with(&["--data", "x"], &[("HOLDFAST_MEMORY", "1")]).map(|_| ());
    let message = message.expect_err("refused");
    assert!(message.contains("HOLDFAST_MEMORY") && message.contains("--data"), "{message}");
}

#[test]
fn no_secret_is_in_what_debug_shows() {
    let secret = "c2VjcmV0";
    let account = format!("mine:{secret}:{secret}");
    let settings = read_with(&["--account", &account], &[]).expect("allowed");
    let shown = format!("{settings:?}");
    assert!(shown.contains("mine"), "{shown}");
    for form in [secret, "secret", "115, 101, 99"] {
        assert!(!shown.contains(form), "{shown}");
    }
}

#[test]
fn times_have_units() {
    for (text, milliseconds) in
        [("500ms", 500), ("30s", 30_000), ("30", 30_000), ("2m", 120_000), ("24h", 86_400_000)]
    {
        assert_eq!(parse_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
    }
    for text in ["", "s", "-1s", "1d", "0ms", "1.5s", "99999999999999999999s", "25h"] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
}

#[test]
fn an_account_that_is_given_can_be_disabled() {
    let two = "one:a2V5;two:a2V5";
    let variables = [("HOLDFAST_ACCOUNTS", two), ("HOLDFAST_DISABLED_ACCOUNTS", "two")];
    let settings = read_with(&[], &variables).expect("both are accounts");
    let disabled: Vec<bool> = settings.accounts.iter().map(|account| account.disabled).collect();
    assert_eq!(disabled, [false, true]);
}

#[test]
fn parts_of_the_connections_are_counts_or_percentages_of_those_there_can_be() {
    let arguments = |address, service| {
        let flags =
            ["--max-connections-per-address", address, "--min-connections-per-service", service];
        read_with(&[&["--max-connections", "200"], &flags[..]].concat(), &[])
            .expect("allowed")
            .limits
    };
    let expect =
        |limits: Limits, possible, [places, kept_by_address, left_to_each_listener]: [_; 3]| {
            let expected = PlaceLimits { places, kept_by_address, left_to_each_listener };
            assert_eq!(limits.places(possible), expected);
        };
    expect(read_with(&[], &[]).expect("the defaults").limits, 1000, [1000, 500, 50]);
    expect(arguments("25%", "7"), 1000, [200, 50, 7]);
    expect(arguments("25%", "70"), 40, [40, 10, 40]);
    expect(arguments("0", "0%"), 1000, [200, 1, 0]);
}
