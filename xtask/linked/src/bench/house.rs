//! What the rows share: one generated market of the design page's size, made once per run. Reads no dataset of this machine, so that
//! figures compare across machines.

use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use traderharness_ingest::{GenerateConfig, LoadOptions, generate, load, quiet};
use traderharness_market::{Clock, DecisionPoint, Mask, MaskConfig, Store};

/// The market of the design page: every table, 5-minute bars of the last days.
const SIZE: (u32, u32, u32) = (5_400, 250, 5);

/// Things that rows measure on.
#[derive(Debug, Default)]
pub(crate) struct House {
    /// Dataset of another process that started this one.
    given: Option<PathBuf>,
    made: Option<tempfile::TempDir>,
    market: Option<(Arc<Store>, Arc<Mask>)>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A house over a dataset that is there already.
    pub(crate) fn over(dataset: &Path) -> Self {
        Self { given: Some(dataset.to_path_buf()), ..Self::default() }
    }

    /// One sentence on the market, for the report.
    pub(crate) fn describe() -> String {
        let (stocks, days, minute_days) = SIZE;
        format!("Synthetic market: {stocks} stocks x {days} days, 5-minute bars of the last {minute_days} days, all tables")
    }

    /// Folder of the generated dataset.
    pub(crate) fn dataset(&mut self) -> anyhow::Result<PathBuf> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        if self.made.is_none() {
            let folder = tempfile::tempdir()?;
            let (stocks, days, minute_days) = SIZE;
            let config = GenerateConfig { stocks, days, minute_days, ..GenerateConfig::default() };
            generate(&config, &folder.path().join("data"), &quiet)?;
            self.made = Some(folder);
        }
        Ok(self.made.as_ref().context("the dataset was just made")?.path().join("data"))
    }

    /// The market, and a mask that hides nothing.
    pub(crate) fn market(&mut self) -> anyhow::Result<(Arc<Store>, Arc<Mask>)> {
        if let Some(market) = &self.market {
            return Ok(market.clone());
        }
        let store = Arc::new(load(&self.dataset()?, &LoadOptions::default(), &quiet)?.store);
        let mask = Arc::new(Mask::new(&store, MaskConfig::default()));
        Ok(self.market.insert((store, mask)).clone())
    }

    /// A clock inside the last day, at the second decision point.
    pub(crate) fn clock(store: &Store) -> anyhow::Result<Clock> {
        let day = store.calendar().days().last().copied().context("the market has no day")?;
        Ok(Clock { day, point: DecisionPoint::Open1 })
    }

    /// Runs a probe over the same dataset in a process of its own and reads the number that it prints.
    pub(crate) fn probe(&mut self, name: &str) -> anyhow::Result<f64> {
        let own = std::env::current_exe().context("this program does not know its own path")?;
        let output = std::process::Command::new(own).args(["bench-probe", name]).arg(self.dataset()?).output()?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    }
}
