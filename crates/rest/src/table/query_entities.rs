//! Query Entities.

use std::vec::IntoIter;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use holdfast_domain::failure::Fault;
use holdfast_domain::table::filter::Filter;
use holdfast_domain::table::{EntityKey, PAGE_ENTITIES_MAX, Position, QueryEntities, StoredEntity};
use hyper::StatusCode;

use super::entity::select;
use super::json_format::Level;
use super::write_entity::EntityWriter;
use super::{Endpoint, Speech, continuation_token, json_answer};
use crate::answer::{Answer, AnswerBody, Piece};
use crate::error::{Code, Error};
use crate::request::Call;
use crate::url_query::UrlQuery;

/// A longer page is sent in pieces of about this length, so that its JSON is never held whole.
const PIECE_BYTES: usize = 64 * 1024;

/// OData options that the service knows but does not support. Others are ignored
/// (github.com/Azure/azure-sdk-for-java/issues/45316).
const OPTIONS_NOT_SUPPORTED: [&str; 6] =
    ["$orderby", "$skip", "$skiptoken", "$expand", "$inlinecount", "$count"];

pub async fn query(call: &Call<'_>) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let select = select(call)?;
    let options = options(call.query)?;
    let query = QueryEntities {
        table: call.table_path()?,
        filter: options.filter,
        from: position(call.query)?,
        range: call.granted.scope().key_range.clone(),
        limit: options.limit,
    };
    let page = call.frontend.domain().query_entities(&query).await?;

    let mut body = Body {
        level: speech.level,
        endpoint: Endpoint(call).to_string(),
        account: call.address.account.to_owned(),
        table: query.table.table.to_string(),
        select: select.map(|names| names.into_iter().map(str::to_owned).collect()),
        entities: page.entities.into_iter(),
        begun: false,
    };
    let first = body.piece()?;
    let mut answer = json_answer(StatusCode::OK, speech.level, first);
    if body.entities.len() > 0 {
        answer.body = in_pieces(answer.body, body);
    }
    if let Some(Position { partition_key, row_key }) = &page.next {
        let token = continuation_token::encode(partition_key);
        answer.header("x-ms-continuation-nextpartitionkey", token);
        let token = row_key.as_deref().map(continuation_token::encode);
        answer.optional_header("x-ms-continuation-nextrowkey", token);
    }
    Ok(answer)
}

/// The options that queries of entities and of tables have in common.
pub struct Options {
    pub filter: Filter,
    pub limit: usize,
}

pub fn options(query: &UrlQuery<'_>) -> Result<Options, Error> {
    if OPTIONS_NOT_SUPPORTED.iter().any(|option| query.get(option).is_some()) {
        return Err(Code::NotImplemented.into());
    }
    let limit = match query.get_nonempty("$top") {
        None => PAGE_ENTITIES_MAX,
        Some(top) => match top.parse() {
            Ok(top @ 1..=PAGE_ENTITIES_MAX) => top,
            Ok(_) | Err(_) => return Err(Code::InvalidInput.into()),
        },
    };
    let filter = Filter::parse(query.get("$filter").unwrap_or_default())?;
    Ok(Options { filter, limit })
}

/// The position from the continuation token of the page before.
fn position(query: &UrlQuery<'_>) -> Result<Option<Position>, Error> {
    let decoded = |name| match query.get_nonempty(name).map(continuation_token::decode) {
        None => Ok(None),
        Some(Some(key)) => Ok(Some(key)),
        Some(None) => Err(Error::from(Code::InvalidInput)),
    };
    let (partition_key, row_key) = (decoded("NextPartitionKey")?, decoded("NextRowKey")?);
    let Some(partition_key) = partition_key else {
        return if row_key.is_none() { Ok(None) } else { Err(Code::InvalidInput.into()) };
    };
    // It is the place of an entity, so it must have the form of keys.
    EntityKey::new(partition_key.as_str(), row_key.as_deref().unwrap_or_default())
        .map_err(|_| Code::InvalidInput)?;
    Ok(Some(Position { partition_key, row_key }))
}

/// The JSON of a page.
struct Body {
    level: Level,
    endpoint: String,
    account: String,
    table: String,
    select: Option<Vec<String>>,
    entities: IntoIter<StoredEntity>,
    begun: bool,
}

impl Body {
    /// The next bytes; the end comes with the last entity.
    fn piece(&mut self) -> Result<Vec<u8>, Fault> {
        let select: Option<Vec<&str>> =
            self.select.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let writer = EntityWriter {
            level: self.level,
            endpoint: &self.endpoint,
            account: &self.account,
            table: &self.table,
            select: select.as_deref(),
        };
        let mut json = Vec::with_capacity(4096);
        if !self.begun {
            writer.begin_list(&mut json);
        }
        while json.len() < PIECE_BYTES
            && let Some(entity) = self.entities.next()
        {
            if self.begun {
                json.push(b',');
            }
            self.begun = true;
            writer.member(&mut json, &entity.view()?);
        }
        if self.entities.len() == 0 {
            writer.end_list(&mut json);
        }
        Ok(json)
    }
}

fn in_pieces(first: AnswerBody, rest: Body) -> AnswerBody {
    let AnswerBody::Whole(first) = first else { return first };
    let rest = stream::unfold(rest, async |mut rest| {
        if rest.entities.len() == 0 {
            return None;
        }
        let piece: Piece = rest.piece().map(Bytes::from).map_err(|fault| {
            tracing::error!(?fault, "the page of a query was broken off");
            rest.entities = Vec::new().into_iter();
            std::io::Error::other(fault)
        });
        Some((piece, rest))
    });
    let first = stream::once(async { Ok(first) });
    AnswerBody::Stream(None, Box::pin(first.chain(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(query: &str) -> Option<Code> {
        let query = UrlQuery::parse(query).expect("a query");
        let options = options(&query).map(drop);
        let position = position(&query).map(drop);
        options.and(position).err().map(|error| error.code)
    }

    #[test]
    fn top_is_from_1_to_1000() {
        for (query, expected) in [
            ("", Some(1000)),
            ("$top=", Some(1000)),
            ("$top=1", Some(1)),
            ("$top=1000", Some(1000)),
            ("%24top=5", Some(5)),
            ("$top=0", None),
            ("$top=1001", None),
            ("$top=-1", None),
            ("$top=1.5", None),
            ("$top=ten", None),
            ("$top=99999999999999999999", None),
        ] {
            let parsed = UrlQuery::parse(query).expect("a query");
            assert_eq!(options(&parsed).ok().map(|options| options.limit), expected, "{query}");
        }
    }

    #[test]
    fn options_that_the_service_has_not_are_refused_and_unknown_ones_are_not() {
        for query in ["$orderby=n", "$skip=5", "$expand=n", "$inlinecount=allpages", "$count=true"]
        {
            assert_eq!(refusal(query), Some(Code::NotImplemented), "{query}");
        }
        for query in ["$orderbyabc=1", "zebra=1", "$filter=", "$select=", "timeout=30"] {
            assert_eq!(refusal(query), None, "{query}");
        }
    }

    #[test]
    fn filters_and_tokens_that_cannot_be_read_are_invalid_input() {
        for query in [
            "$filter=aaa%20bbb",
            "$filter=a%20eq%20null",
            "NextPartitionKey=garbage",
            "NextPartitionKey=1!4!YQ--&NextRowKey=garbage",
            "NextRowKey=1!4!YQ--",
            // `a/b` and a zero character: no entity has such keys.
            "NextPartitionKey=1!4!YS9i",
            "NextPartitionKey=1!4!YQ--&NextRowKey=1!4!AA--",
        ] {
            assert_eq!(refusal(query), Some(Code::InvalidInput), "{query}");
        }
        for query in [
            "$filter=a%20eq%201",
            "NextPartitionKey=1!4!YQ--",
            "NextPartitionKey=1!4!YQ--&NextRowKey=",
            "NextPartitionKey=1!0!&NextRowKey=1!0!",
        ] {
            assert_eq!(refusal(query), None, "{query}");
        }
    }
}
