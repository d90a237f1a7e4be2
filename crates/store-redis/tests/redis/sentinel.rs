//! sentinel
