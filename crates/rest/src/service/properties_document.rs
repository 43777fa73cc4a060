//! The `StorageServiceProperties` document of all four services, read and written.

use holdfast_domain::account::{
    CorsRule, DeleteRetention, Logging, Metrics, ProtocolSettings, RetentionPolicy,
    ServiceProperties, StaticWebsite,
};

use crate::cors;
use crate::service::Service;
use crate::service::protocol_settings;
use crate::version::Version;
use crate::xml::Writer;
use crate::xml::document::{self, DocumentRefusal, Element, Fields, invalid, value};

const ROOT: &str = "StorageServiceProperties";
const RETENTION_DAYS_MAX: u32 = 365;

/// A parsed document: settings that it does not name stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    logging: Option<Logging>,
    hour_metrics: Option<Metrics>,
    minute_metrics: Option<Metrics>,
    cors: Option<Vec<CorsRule>>,
    default_version: Option<String>,
    delete_retention: Option<DeleteRetention>,
    static_website: Option<StaticWebsite>,
    protocols: Option<ProtocolSettings>,
}

impl Update {
    pub fn apply(&self, properties: &mut ServiceProperties) {
        fn set<T: Clone>(stored: &mut T, named: &Option<T>) {
            if let Some(named) = named {
                stored.clone_from(named);
            }
        }
        set(&mut properties.logging, &self.logging);
        set(&mut properties.hour_metrics, &self.hour_metrics);
        set(&mut properties.minute_metrics, &self.minute_metrics);
        set(&mut properties.cors, &self.cors);
        set(&mut properties.delete_retention, &self.delete_retention);
        set(&mut properties.static_website, &self.static_website);
        set(&mut properties.protocols, &self.protocols);
        if self.default_version.is_some() {
            properties.default_version.clone_from(&self.default_version);
        }
    }
}

/// The version for requests that name none, if one is set.
pub fn default_version(properties: &ServiceProperties) -> Option<Version> {
    properties.default_version.as_deref().and_then(|text| Version::parse(text).ok())
}

pub fn parse(service: Service, bytes: &[u8]) -> Result<Update, DocumentRefusal> {
    const EVERY_SERVICE: [&str; 3] = ["HourMetrics", "MinuteMetrics", "Cors"];
    let own: &[&str] = match service {
        Service::Blob => &[
            "Logging",
            "Metrics",
            "DefaultServiceVersion",
            "DeleteRetentionPolicy",
            "StaticWebsite",
        ],
        Service::Queue | Service::Table => &["Logging", "Metrics"],
        Service::File => &["ProtocolSettings", "ShareDeleteRetentionPolicy"],
    };
    let root = document::parse(bytes, ROOT)?;
    let fields = root.fields(&[&EVERY_SERVICE, own].concat())?;
    // Before 2013-08-15 there were only hourly metrics.
    let hour_metrics = fields.get("HourMetrics").or_else(|| fields.get("Metrics"));
    let delete_retention =
        fields.get("DeleteRetentionPolicy").or_else(|| fields.get("ShareDeleteRetentionPolicy"));
    Ok(Update {
        logging: fields.get("Logging").map(parse_logging).transpose()?,
        hour_metrics: hour_metrics.map(parse_metrics).transpose()?,
        minute_metrics: fields.get("MinuteMetrics").map(parse_metrics).transpose()?,
        cors: fields.get("Cors").map(cors::parse).transpose()?,
        default_version: fields.text("DefaultServiceVersion").map(parse_version).transpose()?,
        delete_retention: delete_retention.map(parse_delete_retention).transpose()?,
        static_website: fields.get("StaticWebsite").map(parse_static_website).transpose()?,
        protocols: fields.get("ProtocolSettings").map(protocol_settings::parse).transpose()?,
    })
}

fn parse_version(text: &str) -> Result<String, DocumentRefusal> {
    match Version::parse(text) {
        Ok(version) if version >= Version::V2008_10_27 => Ok(version.to_string()),
        _ => Err(value("DefaultServiceVersion", text)),
    }
}

fn parse_logging(element: &Element) -> Result<Logging, DocumentRefusal> {
    let fields = element.fields(&["Version", "Delete", "Read", "Write", "RetentionPolicy"])?;
    Ok(Logging {
        version: parse_analytics_version(fields)?,
        delete: fields.required_boolean("Delete")?,
        read: fields.required_boolean("Read")?,
        write: fields.required_boolean("Write")?,
        retention: parse_retention(fields.required("RetentionPolicy")?)?,
    })
}

fn parse_metrics(element: &Element) -> Result<Metrics, DocumentRefusal> {
    let fields = element.fields(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    let enabled = fields.required_boolean("Enabled")?;
    let include_apis = fields.boolean("IncludeAPIs")?;
    if enabled && include_apis.is_none() {
        return Err(DocumentRefusal::MissingNode { name: "IncludeAPIs" });
    }
    let retention = match fields.get("RetentionPolicy") {
        Some(retention) => parse_retention(retention)?,
        None if enabled => return Err(DocumentRefusal::MissingNode { name: "RetentionPolicy" }),
        None => RetentionPolicy::default(),
    };
    Ok(Metrics {
        version: parse_analytics_version(fields)?,
        enabled,
        include_apis: include_apis.filter(|_| enabled),
        retention,
    })
}

fn parse_analytics_version(fields: Fields<'_>) -> Result<String, DocumentRefusal> {
    match fields.required_text("Version")? {
        version @ ("1.0" | "2.0") => Ok(version.to_owned()),
        version => Err(value("Version", version)),
    }
}

fn parse_retention(element: &Element) -> Result<RetentionPolicy, DocumentRefusal> {
    Ok(RetentionPolicy { days: parse_days(element.fields(&["Enabled", "Days"])?)? })
}

fn parse_delete_retention(element: &Element) -> Result<DeleteRetention, DocumentRefusal> {
    let fields = element.fields(&["Enabled", "Days", "AllowPermanentDelete"])?;
    Ok(DeleteRetention {
        days: parse_days(fields)?,
        allow_permanent_delete: fields.boolean("AllowPermanentDelete")?.unwrap_or(false),
    })
}

/// The days, which are required if it is enabled.
fn parse_days(fields: Fields<'_>) -> Result<Option<u32>, DocumentRefusal> {
    let enabled = fields.required_boolean("Enabled")?;
    let days = fields.integer("Days", 1..=RETENTION_DAYS_MAX)?;
    match (enabled, days) {
        (true, None) => Err(DocumentRefusal::MissingNode { name: "Days" }),
        (true, days) => Ok(days),
        (false, _) => Ok(None),
    }
}

fn parse_static_website(element: &Element) -> Result<StaticWebsite, DocumentRefusal> {
    let fields = element.fields(&[
        "Enabled",
        "IndexDocument",
        "ErrorDocument404Path",
        "DefaultIndexDocumentPath",
    ])?;
    let text = |name| fields.text(name).map(str::to_owned);
    let website = StaticWebsite {
        enabled: fields.required_boolean("Enabled")?,
        index_document: text("IndexDocument"),
        error_document_404_path: text("ErrorDocument404Path"),
        default_index_document_path: text("DefaultIndexDocumentPath"),
    };
    if website.index_document.is_some() && website.default_index_document_path.is_some() {
        return Err(invalid("IndexDocument and DefaultIndexDocumentPath exclude each other"));
    }
    Ok(website)
}

pub fn write(service: Service, properties: &ServiceProperties, version: Version) -> String {
    let mut xml = Writer::document();
    xml.open(ROOT);
    if service != Service::File {
        write_logging(&mut xml, &properties.logging);
    }
    if version < Version::V2013_08_15 {
        write_metrics(&mut xml, "Metrics", &properties.hour_metrics);
    } else {
        write_metrics(&mut xml, "HourMetrics", &properties.hour_metrics);
        write_metrics(&mut xml, "MinuteMetrics", &properties.minute_metrics);
        write_cors(&mut xml, &properties.cors);
    }
    match service {
        Service::Blob => {
            xml.optional("DefaultServiceVersion", properties.default_version.as_deref());
            if version >= Version::V2017_07_29 {
                write_delete_retention(&mut xml, "DeleteRetentionPolicy", properties, version);
            }
            if version >= Version::V2018_03_28 {
                write_static_website(&mut xml, &properties.static_website);
            }
        }
        Service::File => {
            if version >= Version::V2019_12_12 {
                let name = "ShareDeleteRetentionPolicy";
                write_delete_retention(&mut xml, name, properties, version);
            }
            protocol_settings::write(&mut xml, &properties.protocols, version);
        }
        Service::Queue | Service::Table => {}
    }
    xml.close(ROOT);
    xml.finish()
}

const fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn write_logging(xml: &mut Writer, logging: &Logging) {
    xml.open("Logging");
    xml.element("Version", &logging.version);
    xml.element("Delete", boolean(logging.delete));
    xml.element("Read", boolean(logging.read));
    xml.element("Write", boolean(logging.write));
    write_retention(xml, logging.retention);
    xml.close("Logging");
}

fn write_metrics(xml: &mut Writer, name: &str, metrics: &Metrics) {
    xml.open(name);
    xml.element("Version", &metrics.version);
    xml.element("Enabled", boolean(metrics.enabled));
    xml.optional("IncludeAPIs", metrics.include_apis.map(boolean));
    write_retention(xml, metrics.retention);
    xml.close(name);
}

fn write_retention(xml: &mut Writer, retention: RetentionPolicy) {
    xml.open("RetentionPolicy");
    write_days(xml, retention.days);
    xml.close("RetentionPolicy");
}

fn write_days(xml: &mut Writer, days: Option<u32>) {
    xml.element("Enabled", boolean(days.is_some()));
    xml.optional("Days", days.map(|days| days.to_string()).as_deref());
}

fn write_cors(xml: &mut Writer, rules: &[CorsRule]) {
    xml.open("Cors");
    for rule in rules {
        xml.open("CorsRule");
        xml.element("AllowedOrigins", &rule.allowed_origins.join(","));
        xml.element("AllowedMethods", &rule.allowed_methods.join(","));
        xml.element("AllowedHeaders", &rule.allowed_headers.join(","));
        xml.element("ExposedHeaders", &rule.exposed_headers.join(","));
        xml.element("MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        xml.close("CorsRule");
    }
    xml.close("Cors");
}

fn write_delete_retention(
    xml: &mut Writer,
    name: &str,
    properties: &ServiceProperties,
    version: Version,
) {
    let retention = properties.delete_retention;
    xml.open(name);
    write_days(xml, retention.days);
    if retention.allow_permanent_delete && version >= Version::V2020_02_10 {
        xml.element("AllowPermanentDelete", "true");
    }
    xml.close(name);
}

fn write_static_website(xml: &mut Writer, website: &StaticWebsite) {
    xml.open("StaticWebsite");
    xml.element("Enabled", boolean(website.enabled));
    xml.optional("IndexDocument", website.index_document.as_deref());
    xml.optional("DefaultIndexDocumentPath", website.default_index_document_path.as_deref());
    xml.optional("ErrorDocument404Path", website.error_document_404_path.as_deref());
    xml.close("StaticWebsite");
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::account::Choices;

    const RETENTION: &str =
        "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>";

    fn blob(content: &str) -> Result<Update, DocumentRefusal> {
        let text = format!("<{ROOT}>{content}</{ROOT}>");
        parse(Service::Blob, text.as_bytes())
    }

    fn full() -> ServiceProperties {
        let metrics = Metrics {
            version: "1.0".to_owned(),
            enabled: true,
            include_apis: Some(true),
            retention: RetentionPolicy { days: Some(365) },
        };
        ServiceProperties {
            logging: Logging {
                version: "2.0".to_owned(),
                delete: true,
                read: false,
                write: true,
                retention: RetentionPolicy { days: Some(1) },
            },
            hour_metrics: metrics.clone(),
            minute_metrics: metrics,
            cors: vec![CorsRule {
                allowed_origins: vec!["http://a".to_owned(), "http://b".to_owned()],
                allowed_methods: vec!["GET".to_owned()],
                allowed_headers: vec!["x-ms-*".to_owned()],
                exposed_headers: vec![],
                max_age_seconds: 5,
            }],
            default_version: Some("2019-12-12".to_owned()),
            delete_retention: DeleteRetention { days: Some(14), allow_permanent_delete: true },
            static_website: StaticWebsite {
                enabled: true,
                index_document: Some("index.html".to_owned()),
                error_document_404_path: Some("404.html".to_owned()),
                default_index_document_path: None,
            },
            protocols: ProtocolSettings::default(),
            has_retained: false,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let file = ServiceProperties {
            logging: Logging::default(),
            default_version: None,
            static_website: StaticWebsite::default(),
            delete_retention: DeleteRetention { days: Some(3), allow_permanent_delete: false },
            protocols: ProtocolSettings {
                smb_multichannel: Some(true),
                smb_encryption_required: Some(false),
                nfs_encryption_required: Some(true),
                smb_versions: Some(Choices(0b110)),
                smb_channel_encryption: Some(Choices(0b100)),
                ..ProtocolSettings::default()
            },
            ..full()
        };
        let queue = ServiceProperties {
            default_version: None,
            static_website: StaticWebsite::default(),
            delete_retention: DeleteRetention::default(),
            ..full()
        };
        for (service, properties) in [
            (Service::Blob, full()),
            (Service::Queue, queue.clone()),
            (Service::Table, queue),
            (Service::File, file),
            (Service::Blob, ServiceProperties::default()),
        ] {
            let document = write(service, &properties, Version::V2026_02_06);
            let update = parse(service, document.as_bytes()).expect(&document);
            let mut read = ServiceProperties::default();
            update.apply(&mut read);
            assert_eq!(read, properties, "{service}");
        }
    }

    #[test]
    fn an_absent_element_keeps_its_setting_and_a_present_one_replaces_it() {
        let mut properties = full();
        blob("<Cors/>").expect("an update").apply(&mut properties);
        assert_eq!(properties, ServiceProperties { cors: Vec::new(), ..full() });
        let off = "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>";
        blob(off).expect("an update").apply(&mut properties);
        assert_eq!(properties.delete_retention, DeleteRetention::default());
        assert_eq!(properties.logging, full().logging);
        blob("").expect("an empty update").apply(&mut properties);
        assert_eq!(properties.default_version, full().default_version);
    }

    #[test]
    fn an_element_that_is_not_complete_or_out_of_range_is_refused() {
        let metrics = |content: &str| blob(&format!("<HourMetrics>{content}</HourMetrics>"));
        let version = "<Version>1.0</Version>";
        let missing = |name| Err(DocumentRefusal::MissingNode { name });
        let on = format!("{version}<Enabled>true</Enabled>");
        assert_eq!(metrics(version), missing("Enabled"));
        assert_eq!(metrics(&format!("{on}{RETENTION}")), missing("IncludeAPIs"));
        let apis = format!("{on}<IncludeAPIs>true</IncludeAPIs>");
        assert_eq!(metrics(&apis), missing("RetentionPolicy"));
        assert!(metrics(&format!("{apis}{RETENTION}")).is_ok());
        assert!(metrics(&format!("{version}<Enabled>false</Enabled>")).is_ok());
        for days in ["0", "366", "-1", "x"] {
            let retention = RETENTION.replace('7', days);
            let refusal = Err(value("Days", days));
            assert_eq!(metrics(&format!("{apis}{retention}")), refusal, "{days}");
        }
        let no_days = "<RetentionPolicy><Enabled>true</Enabled></RetentionPolicy>";
        assert_eq!(metrics(&format!("{apis}{no_days}")), missing("Days"));
        let logging = format!("<Logging>{version}<Delete>true</Delete>{RETENTION}</Logging>");
        assert_eq!(blob(&logging), missing("Read"));
        let website = "<StaticWebsite><Enabled>true</Enabled><IndexDocument>a</IndexDocument>\
             <DefaultIndexDocumentPath>b</DefaultIndexDocumentPath></StaticWebsite>";
        assert!(blob(website).is_err());
        let default =
            |text| blob(&format!("<DefaultServiceVersion>{text}</DefaultServiceVersion>"));
        assert!(default("2019-12-12").is_ok());
        assert_eq!(default("newest"), Err(value("DefaultServiceVersion", "newest")));
    }

    #[test]
    fn each_service_takes_its_own_elements() {
        let website = "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>";
        let document = |content: &str| format!("<{ROOT}>{content}</{ROOT}>");
        let taken = |service, content: &str| parse(service, document(content).as_bytes()).is_ok();
        assert!(taken(Service::Blob, website));
        assert!(!taken(Service::Queue, website));
        let share = "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
                     </ShareDeleteRetentionPolicy>";
        assert!(taken(Service::File, share));
        assert!(!taken(Service::Blob, share));
        assert!(!taken(Service::Blob, "<Unknown/>"));
        assert!(!taken(Service::Blob, "<Cors/><Cors/>"));
    }

    #[test]
    fn older_versions_are_answered_what_they_know() {
        let text = |version| write(Service::Blob, &full(), version);
        let oldest = text(Version::V2009_09_19);
        assert!(oldest.contains("<Metrics>") && !oldest.contains("Cors"));
        assert!(!text(Version::V2013_08_15).contains("DeleteRetentionPolicy"));
        assert!(text(Version::V2017_07_29).contains("<DeleteRetentionPolicy>"));
        assert!(!text(Version::V2017_07_29).contains("StaticWebsite"));
        assert!(text(Version::V2018_03_28).contains("<StaticWebsite>"));
    }
}
