//! Everything that only a kernel can say, asked in network namespaces that are gone when a test ends.

mod lab;
mod nft;
