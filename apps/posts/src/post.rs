//! Posts, and their validation.

use headgate::Timestamp;
use thiserror::Error;
use unicode_segmentation::UnicodeSegmentation;
use uuid::Uuid;

use crate::invisible::{is_blank, is_unseen};

/// A post before its validation.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Nickname of the author.
    pub nickname: Option<String>,
    /// Text of the post.
    pub body: Option<String>,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Unique id.
    pub id: Uuid,
    /// 1 to 20 characters.
    pub nickname: String,
    /// 3 to 30 characters.
    pub body: String,
    /// State of moderation: `judging` at first.
    pub status: String,
    /// Time of posting, in seconds since the Unix epoch.
    pub created_at: u64,
}

/// The first reason why a draft is invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", self.message())]
pub enum Invalid {
    /// The nickname is missing.
    NoNickname,
    /// More than 20 code points.
    LongNickname,
    /// The body is missing.
    NoBody,
    /// Fewer than 3 visible graphemes, or more than 30.
    BodyLength,
}

const MAX_NICKNAME: usize = 20;
const MIN_BODY: usize = 3;
const MAX_BODY: usize = 30;

impl Draft {
    /// Validates the draft and returns the post. Space around nickname and body is removed.
    pub fn into_post(self, now: Timestamp) -> Result<Post, Invalid> {
        let nickname = stripped(self.nickname.as_deref()).ok_or(Invalid::NoNickname)?;
        if nickname.chars().count() > MAX_NICKNAME {
            return Err(Invalid::LongNickname);
        }
        let body = stripped(self.body.as_deref()).ok_or(Invalid::NoBody)?;
        if !has_valid_length(body) {
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

/// Removes surrounding space, full-width space included; `None` if nothing is left to be seen.
fn stripped(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !is_blank(text))
}

/// Returns true if `body` is neither too short nor too long. An emoji of a family is many code
/// points, but one character to its reader, who does not see an invisible one: that makes no body
/// longer, and is stored, so that it counts towards the maximum.
fn has_valid_length(body: &str) -> bool {
    let all = body.graphemes(true).count();
    let seen = body.graphemes(true).filter(|grapheme| !is_unseen(grapheme)).count();
    seen >= MIN_BODY && all <= MAX_BODY
}

// === impl Invalid ===

impl Invalid {
    /// Message to the author.
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoNickname => "ニックネームを入力してください",
            Self::LongNickname => "ニックネームは20文字以内で入力してください",
            Self::NoBody => "本文を入力してください",
            Self::BodyLength => "本文は3〜30文字で入力してください",
        }
    }
}
