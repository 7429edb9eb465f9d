//! The lines of `growth` as a picture: what each item costs, beside what it cost when there were a tenth as many.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use dacapo_bench_meter::Line;

/// The picture, in pixels, and the field in it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 480.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 310.0;
/// The most that is shown, and the bar.
const MOST: f64 = 1.6;
const BAR: f64 = 1.3;
const COLOURS: [&str; 5] = ["#1b6ca8", "#c8553d", "#588157", "#8a5a9e", "#b08d1f"];

/// One thing that grew: its sizes, each with what an item cost.
type Curve = Vec<(f64, f64)>;

/// The picture of all lines in these files.
pub(crate) fn of_files(files: &[PathBuf]) -> Result<String> {
    let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for line in text.lines() {
            let line: Line = serde_json::from_str(line).with_context(|| format!("no line of measurements: {line}"))?;
            if let Some(cost) = line.figures.get("cpu_us_each") {
                curves.entry(line.unit).or_default().push((line.n as f64, *cost));
            }
        }
    }
    ensure!(!curves.is_empty(), "there is no line of `growth` in these files");
    Ok(picture(&curves))
}

/// Sizes are counted in tenths of the largest, one step on a scale that doubles.
fn x(size: f64, smallest: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (size / smallest).log10().clamp(0.0, 1.0)
}

fn y(ratio: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * (ratio / MOST).min(1.0)
}

fn picture(curves: &BTreeMap<String, Curve>) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">Processor time for each item, as things grow tenfold</text>\n"
    );
    for ratio in [0.0, 0.5, 1.0, 1.5] {
        let at = y(ratio);
        line(
            &mut svg,
            &format!("<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>"),
        );
        line(
            &mut svg,
            &format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{ratio:.1}</text>", LEFT - 8.0, at + 4.0),
        );
    }
    let bar = y(BAR);
    line(
        &mut svg,
        &format!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{bar:.1}\" y2=\"{bar:.1}\" stroke=\"#999999\" stroke-dasharray=\"5 4\"/>"
        ),
    );
    line(&mut svg, &format!("<text x=\"{:.1}\" y=\"{:.1}\">bar: {BAR}</text>", RIGHT + 8.0, bar + 4.0));
    for times in [1.0, 2.0, 5.0, 10.0] {
        let at = x(times, 1.0);
        line(
            &mut svg,
            &format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{times}×</text>", BOTTOM + 20.0),
        );
    }
    for (place, ((unit, curve), colour)) in curves.iter().zip(COLOURS.iter().cycle()).enumerate() {
        draw(&mut svg, unit, curve, colour, place);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, unit: &str, curve: &Curve, colour: &str, place: usize) {
    let mut curve = curve.clone();
    curve.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some(&(smallest, first)) = curve.first() else { return };
    let points: Vec<(f64, f64)> = curve.iter().map(|(size, cost)| (x(*size, smallest), y(cost / first))).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    line(
        svg,
        &format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" ")),
    );
    for (x, y) in points {
        line(svg, &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
    }
    let (largest, last) = curve.last().copied().unwrap_or((smallest, first));
    let at = 70.0 + 44.0 * place as f64 + if place >= 2 { 40.0 } else { 0.0 };
    line(svg, &format!("<text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{colour}\">{unit}</text>", RIGHT + 60.0));
    let words = format!("{} → {}: {first:.1} → {last:.1} µs", thousands(smallest), thousands(largest));
    line(svg, &format!("<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555555\">{words}</text>", RIGHT + 60.0, at + 16.0));
}

fn line(svg: &mut String, text: &str) {
    writeln!(svg, "{text}").expect("a string takes all");
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("?")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_point_for_each_size_and_its_words() {
        let curve = vec![(1_000_000.0, 6.0), (100_000.0, 5.0)];
        let svg = picture(&BTreeMap::from([("events".to_owned(), curve)]));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("100,000 → 1,000,000: 5.0 → 6.0 µs"), "{svg}");
        // The first stands at 1, and the last a fifth above.
        assert!(svg.contains(&format!("60.0,{:.1} 480.0,{:.1}", y(1.0), y(1.2))), "{svg}");
    }
}
