//! The companies of a synthetic market: codes on real boards, invented names that say so, industries.

use super::random::Random;
use traderharness_market::{Board, Code, Day};

/// Most companies a market can have: what the pairs of syllables name without repeating.
pub(crate) const MAX_COMPANIES: u32 = 6_400;

/// Industries with the products their companies sell.
pub(crate) const INDUSTRIES: [(&str, [&str; 3], &str); 16] = [
    ("电子-半导体", ["集成电路", "功率器件", "封装测试"], "芯微"),
    ("电子-消费电子", ["精密结构件", "声学器件", "智能终端"], "电子"),
    ("计算机-软件", ["工业软件", "云服务", "系统集成"], "软件"),
    ("通信-设备", ["光模块", "基站天线", "线缆"], "通信"),
    ("医药-化学制药", ["原料药", "制剂", "研发服务"], "药业"),
    ("医药-医疗器械", ["影像设备", "体外诊断", "耗材"], "医疗"),
    ("机械-专用设备", ["机床", "自动化产线", "零部件"], "机械"),
    ("电力设备-光伏", ["组件", "逆变器", "电站运营"], "光能"),
    ("电力设备-电池", ["动力电池", "储能系统", "正极材料"], "能源"),
    ("汽车-零部件", ["底盘系统", "内外饰", "线束"], "汽配"),
    ("化工-新材料", ["工程塑料", "电子化学品", "涂料"], "材料"),
    ("有色金属", ["铜加工", "稀土", "铝材"], "资源"),
    ("食品饮料", ["白酒", "调味品", "乳制品"], "食品"),
    ("银行", ["公司业务", "零售业务", "资金业务"], "银行"),
    ("房地产", ["住宅开发", "物业管理", "商业租赁"], "置业"),
    ("交通运输", ["港口", "物流", "航运"], "物流"),
];

const FIRST: [char; 80] = [
    '云', '青', '金', '海', '星', '山', '河', '明', '天', '长', '东', '南', '西', '北', '新', '华', '中', '大', '安', '平', '泰',
    '瑞', '祥', '和', '宏', '广', '博', '远', '达', '通', '联', '合', '同', '力', '创', '科', '智', '信', '诚', '德', '正', '方',
    '圆', '光', '辉', '阳', '晨', '晓', '春', '秋', '松', '柏', '竹', '梅', '兰', '荷', '江', '湖', '泉', '溪', '石', '玉', '珠',
    '宝', '龙', '凤', '鹏', '鹤', '虎', '马', '丰', '盛', '兴', '旺', '隆', '昌', '顺', '利', '吉', '康',
];
const SECOND: [char; 80] = [
    '岭', '川', '原', '野', '峰', '谷', '洲', '湾', '港', '桥', '塔', '城', '关', '门', '台', '阁', '亭', '园', '林', '森', '木',
    '禾', '谦', '恒', '久', '永', '嘉', '佳', '美', '善', '仁', '义', '礼', '勤', '朴', '真', '元', '亨', '贞', '乾', '坤', '震',
    '巽', '坎', '离', '艮', '兑', '甲', '乙', '丙', '丁', '戊', '己', '庚', '辛', '壬', '癸', '子', '丑', '寅', '卯', '辰', '巳',
    '午', '未', '申', '酉', '戌', '亥', '景', '仪', '衡', '度', '量', '权', '矩', '规', '范', '式', '典',
];

/// A company of the market.
#[derive(Debug, Clone)]
pub(crate) struct Company {
    pub(crate) code: Code,
    pub(crate) board: Board,
    /// Name without ST mark, e.g. `虚云岭电子`; the first character says that it is fictitious.
    pub(crate) name: String,
    pub(crate) industry: usize,
    /// First trading day.
    pub(crate) listed: Day,
    /// Position of the first trading day in the market's days; 0 for companies listed before.
    pub(crate) first_index: usize,
    /// First day with the ST mark, as a position in the market's days.
    pub(crate) st_from: Option<usize>,
}

impl Company {
    /// Name as it was shown on a day of the market.
    pub(crate) fn name_on(&self, index: usize) -> String {
        if self.is_st(index) { format!("ST{}", self.name) } else { self.name.clone() }
    }

    pub(crate) fn is_st(&self, index: usize) -> bool {
        self.st_from.is_some_and(|from| index >= from)
    }
}

/// A board, its share of the market in percent, and the blocks (first number, length) its codes are taken from, in order.
type BoardShare = (Board, i64, &'static [(u32, u32)]);

const BOARDS: [BoardShare; 5] = [
    (Board::ShMain, 31, &[(600_000, 1_000), (601_000, 1_000), (603_000, 1_000), (605_000, 1_000)]),
    (Board::SzMain, 28, &[(1, 999), (1_000, 1_000), (2_000, 1_000), (3_000, 1_000)]),
    (Board::ChiNext, 25, &[(300_000, 1_000), (301_000, 1_000), (302_000, 1_000)]),
    (Board::Star, 11, &[(688_000, 1_000), (689_000, 1_000)]),
    (Board::Bse, 5, &[(920_000, 1_000), (830_000, 1_000)]),
];

/// First day on which the registration system applied to new listings of a board (engine E4).
pub(crate) fn registration_since(board: Board) -> Option<Day> {
    match board {
        Board::Star => Day::from_ymd(2019, 7, 22),
        Board::ChiNext => Day::from_ymd(2020, 8, 24),
        Board::ShMain | Board::SzMain => Day::from_ymd(2023, 4, 10),
        Board::Bse => Day::from_ymd(2021, 11, 15),
    }
}

/// All companies, ascending by code.
pub(crate) fn companies(seed: u64, count: u32, days: &[Day]) -> Vec<Company> {
    let mut companies = Vec::with_capacity(count as usize);
    let mut random = Random::new(seed, 1, 0);
    let mut given = 0_i64;
    let mut percent = 0_i64;
    for (board, share, blocks) in BOARDS {
        percent += share;
        let until = i64::from(count) * percent / 100;
        let numbers = blocks.iter().flat_map(|(start, len)| *start..*start + *len);
        for number in numbers.take((until - given) as usize) {
            let Some(code) = Code::parse(&format!("{number:06}")) else { continue };
            // 3,121 and 6,400 have no common factor, so every pair of syllables comes once.
            let pair = (companies.len() as u64 * 3_121 + seed % 6_400) % 6_400;
            let industry = random.below(INDUSTRIES.len() as i64) as usize;
            let name = format!("虚{}{}{}", FIRST[(pair / 80) as usize], SECOND[(pair % 80) as usize], INDUSTRIES[industry].2);
            let (listed, first_index) = listing(&mut random, board, days);
            let st_from = status(&mut random, days.len(), first_index);
            companies.push(Company { code, board, name, industry, listed, first_index, st_from });
        }
        given = until;
    }
    companies.sort_by_key(|c| c.code);
    companies
}

/// One in 70 companies lists inside the window, when its board then had the registration system; the others years before.
fn listing(random: &mut Random, board: Board, days: &[Day]) -> (Day, usize) {
    let years_ago = random.between(400, 6_000) as i32;
    let draw = random.chance(14_000);
    let index = random.between(2, (days.len() as i64 - 2).max(2)) as usize;
    if draw
        && let (Some(day), Some(since)) = (days.get(index), registration_since(board))
        && *day >= since
    {
        return (*day, index);
    }
    let first = days.first().copied().unwrap_or_default();
    let mut listed = first.plus(-years_ago);
    while crate::civil::is_weekend(listed) {
        listed = listed.plus(1);
    }
    (listed, 0)
}

/// 3 % carry the ST mark throughout, 0.5 % get it inside the window; new listings have none.
fn status(random: &mut Random, days: usize, first_index: usize) -> Option<usize> {
    let (always, later) = (random.chance(30_000), random.chance(5_000));
    let from = random.between(1, (days as i64 - 1).max(1)) as usize;
    match (first_index, always, later) {
        (0, true, _) => Some(0),
        (0, false, true) => Some(from),
        _ => None,
    }
}
