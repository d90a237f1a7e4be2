//! What a post says, and when it is one.

use headgate::Timestamp;
use thiserror::Error;
use unicode_segmentation::UnicodeSegmentation;
use uuid::Uuid;

/// What somebody wants to post, before anybody knows whether it can be.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Who says it.
    pub nickname: Option<String>,
    /// What is said.
    pub body: Option<String>,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// A name that no other post has.
    pub id: Uuid,
    /// 1 to 20 characters.
    pub nickname: String,
    /// 3 to 30 characters.
    pub body: String,
    /// How far it has come: `judging` at first.
    pub status: String,
    /// When it was posted, in seconds since the Unix epoch.
    pub created_at: u64,
}

/// Why a draft is no post: the first reason.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", self.message())]
pub enum Invalid {
    /// Nobody says it.
    NoNickname,
    /// More than 20 code points.
    LongNickname,
    /// Nothing is said.
    NoBody,
    /// Fewer than 3 or more than 30 characters, as a reader counts them.
    BodyLength,
}

const MAX_NICKNAME: usize = 20;
const MIN_BODY: usize = 3;
const MAX_BODY: usize = 30;

impl Draft {
    /// The post, made now, if this is one. Space around nickname and body is not part of them.
    pub fn into_post(self, now: Timestamp) -> Result<Post, Invalid> {
        let nickname = stripped(self.nickname.as_deref()).ok_or(Invalid::NoNickname)?;
        if nickname.chars().count() > MAX_NICKNAME {
            return Err(Invalid::LongNickname);
        }
        let body = stripped(self.body.as_deref()).ok_or(Invalid::NoBody)?;
        // An emoji of a family is many code points, and one character to whoever types it.
        if !(MIN_BODY..=MAX_BODY).contains(&body.graphemes(true).count()) {
            return Err(Invalid::BodyLength);
        }
        Ok(Post {
            id: Uuid::new_v4(),
            nickname: nickname.to_owned(),
            body: body.to_owned(),
            status: "judging".to_owned(),
            created_at: now.as_micros() / 1_000_000,
        })
    }
}

/// The text without the space around it, full-width space too; nothing if nothing is left.
fn stripped(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

// === impl Invalid ===

impl Invalid {
    /// What its author sees.
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoNickname => "ニックネームを入力してください",
            Self::LongNickname => "ニックネームは20文字以内で入力してください",
            Self::NoBody => "本文を入力してください",
            Self::BodyLength => "本文は3〜30文字で入力してください",
        }
    }
}
