//! Corrects every number in a file: reads it in chunks, corrects on all cores, and writes the rows in order.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use csv::{ByteRecord, Reader, Writer};
use domain::Country;

use super::columns::{ADDED, Layout, text};
use super::summary::{Fault, Outcome, Summary};
use crate::cli::CorrectArgs;
use crate::commands::{files, print_json, progress};

/// How many rows are in memory at once.
const CHUNK_ROWS: usize = 10_000;
/// A chunk also ends after this many bytes.
const CHUNK_BYTES: usize = 16 * 1024 * 1024;
const BUFFER_BYTES: usize = 128 * 1024;

/// Corrects a file and prints a summary.
pub(in crate::commands) fn correct(args: &CorrectArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    let summary = match rewrite(args) {
        Err(error) if is_closed_pipe(&error) && args.output.is_none() => return Ok(()),
        summary => summary?,
    };
    let took = started.elapsed();
    if args.json {
        print_json(&summary.as_json(took));
    } else {
        eprint!("{}", summary.in_words(took));
    }
    Ok(())
}

/// A closed pipe is no failure: `head` has read enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn rewrite(args: &CorrectArgs) -> anyhow::Result<Summary> {
    // On a terminal, the rows themselves show the progress.
    let bar_is_shown = !args.json && (args.output.is_some() || !io::stdout().is_terminal());
    let bar = progress::bytes(size(&args.file), bar_is_shown);
    let input = bar.wrap_read(files::open(&args.file)?);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(input);
    let name = files::name_of(&args.file);
    let mut first = ByteRecord::new();
    let read = reader.read_byte_record(&mut first);
    ensure!(
        read.with_context(|| format!("cannot read {name}"))?,
        "{name} has no rows"
    );
    let layout = Layout::detect(&first, args.column.as_ref())?;
    let writer = csv::WriterBuilder::new()
        .flexible(true)
        .buffer_capacity(BUFFER_BYTES)
        .from_writer(output(args)?);
    let mut correction = Correction {
        layout,
        country: args.country,
        writer,
        summary: Summary::default(),
    };
    correction
        .run(first, &mut reader)
        .with_context(|| format!("correcting {name} was not finished"))?;
    bar.finish_and_clear();
    Ok(correction.summary)
}

/// The size of the input, if it is known.
fn size(path: &Path) -> Option<u64> {
    let metadata = path.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

fn output(args: &CorrectArgs) -> anyhow::Result<Box<dyn Write>> {
    let Some(path) = &args.output else {
        return Ok(Box::new(io::stdout().lock()));
    };
    let same = path.canonicalize().ok().zip(args.file.canonicalize().ok());
    if same.is_some_and(|(output, input)| output == input) {
        bail!("--output is the file that is read; give another name");
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(file))
}

/// A correction in progress.
struct Correction<W: Write> {
    layout: Layout,
    country: Country,
    writer: Writer<W>,
    summary: Summary,
}

impl<W: Write> Correction<W> {
    /// Processes the file; its first row was read before.
    fn run(&mut self, first: ByteRecord, reader: &mut Reader<impl Read>) -> io::Result<()> {
        let mut rows = vec![ByteRecord::new(); CHUNK_ROWS];
        let mut count = 0;
        if self.layout.has_header {
            self.write(&first, ADDED.map(str::as_bytes))?;
        } else {
            rows[0] = first;
            count = 1;
        }
        loop {
            count += fill(reader, &mut rows[count..])?;
            if count == 0 {
                return self.writer.flush();
            }
            self.correct_chunk(&rows[..count])?;
            count = 0;
        }
    }

    fn correct_chunk(&mut self, rows: &[ByteRecord]) -> io::Result<()> {
        let outcomes = correct_all(rows, self.layout.column, self.country);
        for (row, outcome) in rows.iter().zip(outcomes) {
            self.summary.add(&outcome);
            match outcome {
                Ok(found) => {
                    let number = found.number.to_string();
                    let country = found.country.as_ref().map_or("", Country::as_str);
                    let added = [&number, found.kind.name(), country, ""];
                    self.write(row, added.map(str::as_bytes))?;
                }
                Err(fault) => {
                    let error = fault.to_string();
                    self.write(row, [b"", b"", b"", error.as_bytes()])?;
                }
            }
        }
        Ok(())
    }

    /// Writes a row unchanged, padded to the width of the first one, with the added columns.
    fn write(&mut self, row: &ByteRecord, added: [&[u8]; ADDED.len()]) -> io::Result<()> {
        let missing = self.layout.width.saturating_sub(row.len());
        let filling = std::iter::repeat_n(&b""[..], missing);
        let cells = row.iter().chain(filling).chain(added);
        self.writer.write_record(cells).map_err(into_io)
    }
}

/// Reads rows into `rows` and returns how many; 0 at the end of the file.
fn fill(reader: &mut Reader<impl Read>, rows: &mut [ByteRecord]) -> io::Result<usize> {
    let mut bytes = 0;
    for (count, row) in rows.iter_mut().enumerate() {
        if bytes >= CHUNK_BYTES || !reader.read_byte_record(row).map_err(into_io)? {
            return Ok(count);
        }
        bytes += row.as_slice().len();
    }
    Ok(rows.len())
}

/// Rows of any length and encoding are accepted, so only I/O can fail.
fn into_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Corrects the numbers of these rows on all cores.
fn correct_all(rows: &[ByteRecord], column: usize, country: Country) -> Vec<Outcome> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = rows.len().div_ceil(cores).max(1);
    let correct_share = |rows: &[ByteRecord]| -> Vec<Outcome> {
        let correct = |row| correct_row(row, column, country);
        rows.iter().map(correct).collect()
    };
    thread::scope(|scope| {
        let shares = rows.chunks(share);
        let workers: Vec<_> = shares
            .map(|rows| scope.spawn(move || correct_share(rows)))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().expect("correcting a number never panics")
        };
        workers.into_iter().flat_map(join).collect()
    })
}

fn correct_row(row: &ByteRecord, column: usize, country: Country) -> Outcome {
    let cell = row.get(column).ok_or(Fault::NoCell)?;
    numbering::examine(text(cell).trim(), Some(country)).map_err(Fault::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(csv: &str) -> String {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(csv.as_bytes());
        let mut first = ByteRecord::new();
        assert!(reader.read_byte_record(&mut first).expect("CSV"));
        let mut correction = Correction {
            layout: Layout::detect(&first, None).expect("a layout"),
            country: Country::parse("LV").expect("a country"),
            writer: csv::WriterBuilder::new()
                .flexible(true)
                .from_writer(Vec::new()),
            summary: Summary::default(),
        };
        correction
            .run(first, &mut reader)
            .expect("memory takes everything");
        let bytes = correction.writer.into_inner().expect("flushed");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn rows_stay_in_order_over_many_chunks() {
        let count = 2 * CHUNK_ROWS + 7;
        let numbers: Vec<String> = (0..count).map(|n| (20_000_000 + n).to_string()).collect();
        let out = rewritten(&format!("to\n{}\n", numbers.join("\n")));
        let mut lines = out.lines();
        assert_eq!(
            lines.next(),
            Some("to,NumberE164,NumberType,CountryIso,Error")
        );
        for number in &numbers {
            let line = lines.next().unwrap_or_default();
            assert!(line.starts_with(&format!("{number},")), "{number}: {line}");
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn short_rows_are_padded() {
        let out = rewritten("id,to\n1,20000001\n2\n");
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1], "1,20000001,+37120000001,mobile,LV,");
        assert_eq!(
            lines[2],
            "2,,,,,the row ends before the column of the numbers"
        );
    }
}
