//! The Rust clients of the service: `azure_storage_blob`, `object_store` and `opendal`, each doing what
//! programs do with it. Told by the environment: ENDPOINT, ACCOUNT, KEY, SAS (of the account).

use std::env;
use std::error::Error;

use azure_core::http::{RequestContent, Url};
use azure_storage_blob::BlobServiceClient;
use futures_util::TryStreamExt as _;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, WriteMultipart};

type Outcome = Result<(), Box<dyn Error>>;

const LARGE: usize = 20 << 20;

#[tokio::main]
async fn main() -> Outcome {
    sdk().await?;
    println!("azure_storage_blob: passed");
    object_store().await?;
    println!("object_store: passed");
    opendal().await?;
    println!("opendal: passed");
    Ok(())
}

fn given(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

async fn sdk() -> Outcome {
    let url = Url::parse(&format!("{}?{}", given("ENDPOINT"), given("SAS")))?;
    let service = BlobServiceClient::new(url, None, None)?;
    let container = service.blob_container_client("rust-sdk");
    container.create(None).await?;
    for length in [0, 10, LARGE] {
        let blob = container.blob_client(&format!("blob-{length}"));
        blob.upload(RequestContent::from(content(length)), None).await?;
        let read = blob.download(None).await?.body.collect().await?;
        assert_eq!(read.as_ref(), content(length));
        assert!(blob.exists().await?);
    }
    container.delete(None).await?;
    Ok(())
}

async fn object_store() -> Outcome {
    let url = Url::parse(&format!("{}/object-store?{}", given("ENDPOINT"), given("SAS")))?;
    azure_storage_blob::BlobContainerClient::new(url, None, None)?.create(None).await?;
    let store = MicrosoftAzureBuilder::new()
        .with_account(given("ACCOUNT"))
        .with_access_key(given("KEY"))
        .with_endpoint(given("ENDPOINT"))
        .with_container_name("object-store")
        .with_allow_http(true)
        .build()?;
    let (first, second) = (Path::from("folder/a"), Path::from("folder/b"));
    store.put(&first, content(10).into()).await?;
    let again = store.put_opts(&first, content(5).into(), PutMode::Create.into()).await;
    assert!(matches!(again, Err(object_store::Error::AlreadyExists { .. })), "{again:?}");
    let mut upload = WriteMultipart::new(store.put_multipart(&second).await?);
    upload.write(&content(LARGE));
    upload.finish().await?;
    assert_eq!(store.get(&second).await?.bytes().await?, content(LARGE));
    assert_eq!(store.get_range(&second, 100..200).await?, content(LARGE)[100..200]);
    let from_second: Vec<_> = store.list_with_offset(None, &first).try_collect().await?;
    assert_eq!(from_second.len(), 1);
    let listed = store.list_with_delimiter(None).await?;
    assert_eq!(listed.common_prefixes, [Path::from("folder")]);
    store.copy(&second, &Path::from("copy")).await?;
    store.rename(&Path::from("copy"), &Path::from("renamed")).await?;
    assert_eq!(store.head(&Path::from("renamed")).await?.size, LARGE as u64);
    store.delete(&first).await?;
    Ok(())
}

async fn opendal() -> Outcome {
    let url = Url::parse(&format!("{}/opendal?{}", given("ENDPOINT"), given("SAS")))?;
    azure_storage_blob::BlobContainerClient::new(url, None, None)?.create(None).await?;
    let service = opendal::services::Azblob::default()
        .endpoint(&given("ENDPOINT"))
        .account_name(&given("ACCOUNT"))
        .account_key(&given("KEY"))
        .container("opendal");
    let operator = opendal::Operator::new(service)?;
    operator.write("folder/small", content(10)).await?;
    let mut writer = operator.writer_with("folder/large").chunk(4 << 20).await?;
    writer.write(content(LARGE)).await?;
    writer.close().await?;
    assert_eq!(operator.read("folder/large").await?.to_vec(), content(LARGE));
    assert_eq!(operator.read_with("folder/large").range(5..10).await?.to_vec(), content(10)[5..]);
    assert_eq!(operator.list("folder/").await?.iter().filter(|entry| entry.metadata().is_file()).count(), 2);
    operator.copy("folder/small", "folder/copy").await?;
    assert_eq!(operator.stat("folder/copy").await?.content_length(), 10);
    operator.delete("folder/large").await?;
    assert!(!operator.exists("folder/large").await?);
    Ok(())
}
