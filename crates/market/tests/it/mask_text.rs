//! Texts: what must go and what must stay (engine E8.3, E8.4; spec/tools.md b09, b10).

use std::borrow::Cow;
use traderharness_market::testing::{SmallMarket, SmallStock, code, day};
use traderharness_market::{Mask, MaskConfig, MaskStyle, Store};

/// A Thursday.
const TODAY: &str = "2024-03-14";

pub(crate) fn store() -> Store {
    let stock = |code: &str, name: &str| SmallStock::new(code).name(name).closes(&[10.0; 5]);
    SmallMarket::new("2024-03-08", 5)
        .stock(stock("600519", "贵州茅台").alias("Kweichow Moutai").alias("贵州茅台酒股份有限公司"))
        .stock(stock("000002", "万  科Ａ"))
        .stock(stock("000001", "平安银行"))
        .stock(stock("300024", "机器人"))
        .stock(stock("600100", "*ST信通源"))
        .stock(stock("600000", "浦发银行"))
        .stock(stock("000100", "TCL科技"))
        .stock(stock("601318", "中国平安").alias("平安"))
        .stock(SmallStock::new("600036").name("招商银行").alias("China Merchants Bank").outside())
        .stock(SmallStock::new("002594").name("比亚迪").outside())
        .build()
}

fn mask(store: &Store, dates: bool, entities: bool) -> Mask {
    Mask::new(store, MaskConfig { dates, entities, style: MaskStyle::Opaque, key: b"test key".to_vec() })
}

/// `{600519}` in `expected` stands for the alias of that code, `{C600519}` for the label of its company.
fn fill(store: &Store, mask: &Mask, expected: &str) -> String {
    let mut text = expected.to_owned();
    for (i, real) in store.codes().iter().enumerate() {
        let alias = mask.code(traderharness_market::SecId(i as u32));
        text = text.replace(&format!("{{C{real}}}"), &format!("Company {alias}")).replace(&format!("{{{real}}}"), alias);
    }
    text.replace("{other}", "another company").replace("{code}", "another code")
}

fn check_entities(input: &str, expected: &str) {
    let store = store();
    let mask = mask(&store, false, true);
    let got = mask.text(input, day(TODAY));
    assert_eq!(got, fill(&store, &mask, expected), "input: {input}");
    assert_eq!(mask.text(&got, day(TODAY)), got, "not idempotent: {input}");
}

fn check_dates(input: &str, expected: &str) {
    let store = store();
    let mask = mask(&store, true, false);
    let got = mask.text(input, day(TODAY));
    assert_eq!(got, expected, "input: {input}");
    assert_eq!(mask.text(&got, day(TODAY)), got, "not idempotent: {input}");
}

fn check_same(inputs: &[&str]) {
    let store = store();
    let mask = mask(&store, true, true);
    for input in inputs {
        let got = mask.text(input, day(TODAY));
        assert!(matches!(got, Cow::Borrowed(_)), "{input} -> {got}");
    }
}

#[test]
fn names_become_labels() {
    check_entities("贵州茅台公告", "{C600519}公告");
    check_entities("贵州茅台酒股份有限公司公告", "{C600519}公告");
    check_entities("Kweichow Moutai rose", "{C600519} rose");
    check_entities("KWEICHOW MOUTAI rose", "{C600519} rose");
    check_entities("万科A、万科Ａ与万科", "{C000002}、{C000002}与{C000002}");
    check_entities("*ST信通源和信通源", "{C600100}和{C600100}");
    check_entities("TCL科技增持", "{C000100}增持");
    check_entities("ＴＣＬ科技增持", "{C000100}增持");
    check_entities("招商银行与比亚迪", "{other}与{other}");
    check_entities("中国平安旗下平安银行", "{C601318}旗下{C000001}");
    check_entities("平安银行和平安", "{C000001}和{C601318}");
}

#[test]
fn everyday_words_are_companies_only_where_companies_stand() {
    check_entities("工业机器人销量增长", "工业机器人销量增长");
    check_entities("机器人(300024)涨停", "{C300024}({300024})涨停");
    check_entities("机器人：关于回购的公告", "{C300024}：关于回购的公告");
    check_entities("“机器人”今日涨停", "“{C300024}”今日涨停");
}

#[test]
fn latin_names_need_word_boundaries() {
    check_entities("Kweichow Moutais", "Kweichow Moutais");
    check_entities("China Merchants Bankers", "China Merchants Bankers");
    check_entities("China Merchants Bank.", "{other}.");
}

#[test]
fn standalone_codes_of_the_universe_become_aliases() {
    check_entities("600519", "{600519}");
    check_entities("(600519)", "({600519})");
    check_entities("贵州茅台（600519）", "{C600519}（{600519}）");
    check_entities("关注600519。", "关注{600519}。");
    check_entities("600519.SH", "{600519}");
    check_entities("SH600519", "{600519}");
    check_entities("sh.600519", "{600519}");
    check_entities("SZ:000001 and 600519.XSHG", "{000001} and {600519}");
    check_entities("600519 CH Equity", "{600519} Equity");
    check_entities("600519,000001;600000", "{600519},{000001};{600000}");
    check_entities("600519/000001", "{600519}/{000001}");
    check_entities("600519-000001", "{600519}-{000001}");
    check_entities("６００５１９涨停", "{600519}涨停");
    check_entities("代码:600519", "代码:{600519}");
    check_entities("贵州茅台-600519", "{C600519}-{600519}");
    check_entities("https://q.example/sh600519.html", "https://q.example/{600519}.html");
    check_entities("buy 600519 today", "buy {600519} today");
}

#[test]
fn codes_outside_the_universe_go_where_codes_stand() {
    check_entities("招商银行（600036）", "{other}（{code}）");
    check_entities("600036.SH", "{code}");
    check_entities("sz002594", "{code}");
    check_entities("股票代码：002594", "股票代码：{code}");
    check_entities("比亚迪 002594", "{other} {code}");
    check_entities("(600037)", "({code})");
    check_entities("600036", "{code}");
    check_entities("a total of 600036 seen", "a total of 600036 seen");
}

#[test]
fn numbers_amounts_and_ids_are_untouched() {
    // spec/tools.md b10
    check_same(&[
        "600519元",
        "600519 元",
        "600519股",
        "买入600000股",
        "600000 shares",
        "600519万",
        "600519%",
        "600519.50",
        "0.600519",
        "12.600519",
        "1,600519.5",
        "¥600519",
        "$600519",
        "-600519",
        "+600519",
        "6005190",
        "1600519",
        "A600519",
        "600519B",
        "ORD-600519",
        "ORD_600519",
        "600519-AB",
        "#600519",
        "quantity 600519",
        "qty=600519",
        "volume: 600519",
        "成交量600519",
        "合同号600519",
        "id 600519",
        "No. 600519",
        "编号：600519",
        "cond-0001",
        "mem-0001",
        "env-0001",
        "000001.SH",
        "sh000001",
        "600519.5",
        "x600519y",
        "600519手",
        "3.600519",
        "total 600000",
        "SHM-600519",
        "STAR-000001",
        "GEM-000002",
        "Company SHM-000001",
        "another company",
        "another code",
        "D-3 10:30",
        "M-4",
        "Q-2",
        "Y-1年",
        "H-1",
    ]);
}

#[test]
fn ordinary_words_and_numbers_are_no_dates() {
    check_same(&[
        "涨幅3.14%",
        "2024.03",
        "2024元",
        "2024 shares",
        "中证2000",
        "CSI 2000",
        "CSI 1000",
        "price 2024.50",
        "1.2024",
        "3个月",
        "14日均线",
        "5日涨幅",
        "连续3日",
        "24年",
        "10年期国债",
        "3月期",
        "may rise",
        "march on",
        "12:30",
        "10:30",
        "1/2",
        "3/14",
        "20241399",
        "20240230",
        "20240314元",
        "120240314",
        "20240314001",
        "2024ABC",
        "v1.2.3",
        "192.168.1.1",
        "2024",
        "1998",
        "600.00",
        "second half",
        "first quarter",
        "Q1",
        "H1",
        "周四",
        "Thursday",
        "the 14 men",
        "decade",
        "marching 14",
        "Mars 2",
        "sept",
        "version 2024.3.14.5",
        "2024件",
        "（2024）",
        "Q5 2024",
        "H3 2024",
        "13月",
        "3月龄",
        "一季度",
        "上半年",
        "May 30 percent",
        "March 14,000 troops",
        "123456789",
        "十倍",
        "三元",
        "第三",
        "二十",
        "5G",
        "T+1",
        "A股",
        "-5%",
        "1Q",
        "3H",
        "quantity 20240314",
    ]);
}

#[test]
fn full_dates_become_day_labels() {
    for form in [
        "2024-03-11",
        "2024-3-11",
        "2024/3/11",
        "2024/03/11",
        "2024.3.11",
        "2024.03.11",
        "20240311",
        "2024年3月11日",
        "2024年03月11日",
        "2024 年 3 月 11 日",
        "2024年3月11号",
        "3月11日",
        "03月11日",
        "11 March 2024",
        "11th March 2024",
        "11th of March, 2024",
        "11 Mar 2024",
        "11-Mar-2024",
        "11-Mar-24",
        "March 11, 2024",
        "March 11 2024",
        "March 11th, 2024",
        "Mar. 11, 2024",
        "Mar 11, 2024",
        "MARCH 11, 2024",
        "march 11, 2024",
        "March 11",
        "11 March",
        "Monday, March 11, 2024",
        "Mon, 11 Mar 2024",
        "Monday 11 March 2024",
        "2024-03-11 (Monday)",
        "2024年3月11日（周一）",
        "2024年3月11日 星期一",
        "星期一，3月11日",
        "周一（3月11日）",
        "２０２４-０３-１１",
        "２０２４年３月１１日",
        "２０２４／０３／１１",
        "2024\u{2011}03\u{2011}11",
        "2024\u{2013}03\u{2013}11",
        "2024\u{2212}3\u{2212}11",
        "２０２４\u{2010}０３\u{2010}１１",
        "二〇二四年三月十一日",
        "二零二四年三月十一日",
        "三月十一日",
        "3/11/2024",
        "03/11/2024",
        "11.03.2024",
        "24年3月11日",
        "2024 March 11",
        "2024-W11",
        "2024-W11-1",
        "2024年三月十一日",
    ] {
        check_dates(form, "D-3");
        check_dates(&format!("于{form}，公告"), "于D-3，公告");
        check_dates(&format!("on {form}."), "on D-3.");
    }
    check_dates("2024-04-01", "D+18");
    check_dates("2024-02-30", "2024-02-30");
    check_dates("12月30日", "D-75");
    check_dates("report_20240311.pdf", "report_D-3.pdf");
    check_dates("3月11日至13日", "D-3 to D-1");
    check_dates("3月11日-4月2日", "D-3 to D+19");
    check_dates("2023年12月30日至1月2日", "D-75 to D-72");
    check_dates("March 11-13, 2024", "D-3 to D-1");
    check_dates("11-13 March 2024", "D-3 to D-1");
    check_dates("29 February", "D-14");
    check_dates("2024-03-11~2024-03-13", "D-3~D-1");
}

#[test]
fn a_day_of_the_month_alone_is_hidden_without_an_offset() {
    for (form, expected) in [
        ("俄军17日深夜至18日凌晨行动", "俄军D?深夜至D?凌晨行动"),
        ("国防部15日称", "国防部D?称"),
        ("22日至23日", "D? to D?"),
        ("22至23日分赴各地", "D? to D?分赴各地"),
        ("本月13日", "本月D?"),
        ("8日（周一）晚间公告", "D?晚间公告"),
        ("截至11日，", "截至D?，"),
        ("会议闭幕。26日，各方", "会议闭幕。D?，各方"),
        ("拘留5日处罚", "拘留5日处罚"),
        ("连续5日在涨", "连续5日在涨"),
        ("14日均线在上", "14日均线在上"),
        ("近5日在涨", "近5日在涨"),
        ("5日、10日均线", "5日、10日均线"),
    ] {
        check_dates(form, expected);
    }
}

#[test]
fn a_current_year_in_a_name_is_hidden() {
    for (form, expected) in [
        ("2024世界机器人大会", "Y+0世界机器人大会"),
        ("IMO 2025", "IMO Y+1"),
        ("2024届毕业生", "Y+0届毕业生"),
        ("2024余公里", "2024余公里"),
        ("近2024名记者", "近2024名记者"),
        ("CSI 2000", "CSI 2000"),
        ("IMO 2000", "IMO 2000"),
        ("WAIC2025闭幕：参观人数", "WAICY+1闭幕：参观人数"),
        ("直击WAIC2025", "直击WAICY+1"),
        ("绣着“1965”“2025”字样", "绣着“1965”“Y+1”字样"),
        ("the \"2025\" sign", "the \"Y+1\" sign"),
        ("型号E2025", "型号E2025"),
        ("型号RT2025", "型号RT2025"),
        ("型号X-ABC2025", "型号X-ABC2025"),
        ("ABC2025-1", "ABC2025-1"),
        ("ABC2025万元", "ABC2025万元"),
        ("WAIC2018", "WAIC2018"),
    ] {
        check_dates(form, expected);
    }
}

#[test]
fn times_follow_their_day_in_exchange_time() {
    for (form, expected) in [
        ("2024-03-11 15:40:00", "D-3 15:40"),
        ("2024-03-11 15:40", "D-3 15:40"),
        ("2024-03-11T15:40:00", "D-3 15:40"),
        ("2024-03-11T07:40:00Z", "D-3 15:40"),
        ("2024-03-11T07:40:00.123Z", "D-3 15:40"),
        ("2024-03-11T15:40:00+08:00", "D-3 15:40"),
        ("2024-03-11 15:40 +0800", "D-3 15:40"),
        ("2024-03-11 20:00 UTC", "D-2 04:00"),
        ("2024-03-11 20:00 GMT+8", "D-3 20:00"),
        ("2024-03-11 03:40 EDT", "D-3 15:40"),
        ("2024-03-11 15:40 (北京时间)", "D-3 15:40"),
        ("2024-03-11 15:40 Beijing time", "D-3 15:40"),
        ("2024年3月11日 15：40", "D-3 15:40"),
        ("3月11日15:40", "D-3 15:40"),
        ("March 11, 2024 at 3:40 PM", "D-3 15:40"),
        ("20240311 15:40", "D-3 15:40"),
        ("202403111540", "D-3 15:40"),
        ("20240311154000", "D-3 15:40"),
        ("20240311T074000Z", "D-3 15:40"),
        ("２０２４年３月１１日１５：４０", "D-3 15:40"),
        ("2024-03-11 25:40", "D-3 25:40"),
    ] {
        check_dates(form, expected);
    }
}

#[test]
fn months_quarters_halves_and_years_become_unit_labels() {
    for (form, expected) in [
        ("March 2024", "M+0"),
        ("Mar 2024", "M+0"),
        ("November 2023", "M-4"),
        ("Nov-23", "M-4"),
        ("November of 2023", "M-4"),
        ("2023-11", "M-4"),
        ("2023/11", "M-4"),
        ("2023年11月", "M-4"),
        ("2023年11月份", "M-4"),
        ("11月", "M-4"),
        ("二〇二三年十一月", "M-4"),
        ("in November", "in M-4"),
        ("1-2月", "M-2 to M-1"),
        ("2024年1-2月", "M-2 to M-1"),
        ("2023 November", "M-4"),
        ("Q1 2024", "Q+0"),
        ("Q4 2023", "Q-1"),
        ("Q3'23", "Q-2"),
        ("Q3 FY23", "Q-2"),
        ("3Q23", "Q-2"),
        ("3Q 2023", "Q-2"),
        ("23Q3", "Q-2"),
        ("2023Q3", "Q-2"),
        ("2023-Q3", "Q-2"),
        ("2023 Q3", "Q-2"),
        ("2023年第三季度", "Q-2"),
        ("2023年三季度", "Q-2"),
        ("2023年三季报", "Q-2报"),
        ("2023年Q3", "Q-2"),
        ("third quarter of 2023", "Q-2"),
        ("the first half of 2023", "the H-2"),
        ("2023H2", "H-1"),
        ("H1 2023", "H-2"),
        ("1H23", "H-2"),
        ("2023年上半年", "H-2"),
        ("2023年", "Y-1年"),
        ("2023 年", "Y-1年"),
        ("2023年报", "Y-1年报"),
        ("2023年度报告", "Y-1年度报告"),
        ("2023年年度报告", "Y-1年年度报告"),
        ("二〇二三年", "Y-1年"),
        ("２０２３年", "Y-1年"),
        ("1998年成立", "Y-26年成立"),
        ("FY2023", "Y-1"),
        ("FY23", "Y-1"),
        ("fiscal year 2023", "fiscal year Y-1"),
        ("in 2023", "in Y-1"),
        ("since 2019,", "since Y-5,"),
        ("2023 annual report", "Y-1 annual report"),
        ("2024E", "Y+0E"),
        ("2023全年", "Y-1全年"),
        ("2024-2026", "Y+0 to Y+2"),
        ("2024—2026年", "Y+0 to Y+2年"),
        ("2023/24", "Y-1 to Y+0"),
        ("公告编号：2024-015", "公告编号：Y+0-015"),
        ("证监许可〔2024〕123号", "证监许可〔Y+0〕123号"),
    ] {
        check_dates(form, expected);
    }
}

#[test]
fn each_switch_works_alone() {
    let store = store();
    let text = "贵州茅台（600519）2024-03-11公告";
    let today = day(TODAY);
    assert_eq!(mask(&store, false, false).text(text, today), text);
    assert!(matches!(mask(&store, false, false).text(text, today), Cow::Borrowed(_)));
    assert_eq!(mask(&store, true, false).text(text, today), "贵州茅台（600519）D-3公告");
    let entities = mask(&store, false, true);
    assert_eq!(entities.text(text, today), fill(&store, &entities, "{C600519}（{600519}）2024-03-11公告"));
    let both = mask(&store, true, true);
    assert_eq!(both.text(text, today), fill(&store, &both, "{C600519}（{600519}）D-3公告"));
}

#[test]
fn name_fields_are_always_neutral() {
    let store = store();
    let mask = mask(&store, true, true);
    for (name, expected) in [
        ("贵州茅台", "{C600519}"),
        ("万科A", "{C000002}"),
        ("机器人", "{C300024}"),
        ("招商银行", "{other}"),
        ("某家未知公司", "{other}"),
        ("", ""),
    ] {
        let got = mask.name(name);
        assert_eq!(got, fill(&store, &mask, expected), "{name}");
        assert_eq!(mask.name(&got), got);
    }
    let open = Mask::new(&store, MaskConfig::default());
    assert_eq!(open.name("贵州茅台"), "贵州茅台");
}

#[test]
fn permutation_texts_show_the_permuted_code() {
    let store = store();
    let mask = Mask::new(&store, MaskConfig { dates: false, entities: true, style: MaskStyle::Permutation, key: b"k".to_vec() });
    let sec = store.find(code("600519")).expect("known");
    assert_eq!(mask.text("见600519。", day(TODAY)), format!("见{}。", mask.code(sec)));
}
