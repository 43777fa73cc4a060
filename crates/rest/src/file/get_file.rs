//! Get File.

use holdfast_domain::share::{FileDownload, GetFile};
use hyper::StatusCode;

use super::{node_address, node_headers, rest_call};
use crate::answer::Answer;
use crate::body::download::{RangeCheck, give_content};
use crate::error::Error;
use crate::headers::content_headers;
use crate::headers::range;
use crate::headers::resource_headers;
use crate::request::Call;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let asked = range::requested(call.headers)?;
    let check = RangeCheck::asked(call, asked)?;
    let file = node_address::read_file(call)?;
    let state = file.state;
    let download = rest_call::run(call, GetFile { file, range: asked }).await?;
    let FileDownload { located, range, reader } = download;
    check.admit(range.end - range.start)?;

    let status = if asked.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut answer = Answer::new(status);
    node_headers::node(&mut answer, call, &located);
    resource_headers::metadata(&mut answer, &located.node.metadata);
    let mut md5 = None;
    if let Some(file) = located.node.file() {
        node_headers::file(&mut answer, call, file, located.now, state);
        md5 = file.headers.content_md5.as_ref().map(content_headers::encode_md5);
    }
    answer.header("accept-ranges", "bytes");
    if asked.is_some() {
        let (first, last) = (range.start, range.end - 1);
        answer.header("content-range", format!("bytes {first}-{last}/{}", located.node.length()));
        answer.optional_header("x-ms-content-md5", md5);
        check.describe(&mut answer, reader.clone()).await?;
    } else {
        answer.optional_header("content-md5", md5);
    }
    give_content(call, &mut answer, range.end - range.start, reader).await?;
    Ok(answer)
}
