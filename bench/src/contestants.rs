mod governor;
mod limitador;
mod ours;
mod throttlecrab;

pub(crate) use self::{
    governor::Governor, limitador::Limitador, ours::Ours, throttlecrab::Throttlecrab,
};
