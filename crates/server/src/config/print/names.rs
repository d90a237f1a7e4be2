//! Values that are shown by the name they were given.

use super::{Show, scalar, value::Value};
use crate::config::{
    Broker, DeniedConsumes, EnvoyAuth, EventName, KeyPrefix, NodeId, ResponseHeaders,
    SaslMechanism, Schedule, SecurityProtocol, Topic, WebhookUrl, XdsUrl,
};

impl Show for Schedule {
    fn show(&self) -> Value {
        scalar(self.get().to_string())
    }
}

impl Show for Broker {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for Topic {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for SecurityProtocol {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for SaslMechanism {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for WebhookUrl {
    fn show(&self) -> Value {
        scalar(self.shown())
    }
}

impl Show for EventName {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for KeyPrefix {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for EnvoyAuth {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for DeniedConsumes {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for XdsUrl {
    fn show(&self) -> Value {
        scalar(self.to_string())
    }
}

impl Show for NodeId {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for ResponseHeaders {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}
