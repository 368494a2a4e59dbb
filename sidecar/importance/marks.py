# ruff: noqa: E501
"""Words that tell what lasts from what passes, by language. Data only; entries match as in `words`.

A memory is worth keeping for what will hold and matter again: limits, conditions, what is at stake. It is worth little
for what holds now, for what was only chatted or vented, for what is vague, and for insisting. English marks count in
every language. Each list holds common words of the language itself; names, products and topics have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping

LIMIT: Mapping[str, str] = {
    "en": r"only|at most|at least|no more than|no longer|no exceptions?|except|unless|exactly|maximum|minimum|max|limits?|quota|"
    r"caps?|no \w+|nothing|cannot|can't|can never|may not|must not|not|neither|without|ruled out|rather than|until|per \w+|"
    r"(?:above|below|under|over|after|before|past|by) \d\S*|every|each|all|both|when|whenever|if|once|as soon as|twice|daily|"
    r"weekly|monthly|valid|expires?|starting|corrections?|corrected|wrong|moved to|changed to|renamed|replaced|switched|instead",
    "de": "nur|höchstens|mindestens|außer|ausschließlich|genau|kein*|nicht|ohne|weder|darf|dürfen|bis|ab|pro|je|jede*|täglich|"
    "wöchentlich|wenn|falls|sobald|bevor|vor jedem|nachdem|statt|gilt|sonst|stets|korrektur|geändert|umbenannt|ersetzt",
    "fr": "seulement|uniquement|au plus|au moins|maximum|minimum|sauf|exactement|aucun*|sans|ni|jusqu*|par|chaque|tous les|"
    "quand|lorsque|si|dès que|avant|après|sinon|pas de|ne pas|toutes les|correction|remplacé*|renommé*|"
    r"ne \w+ (?:pas|plus|jamais|que)|n'\w+ (?:pas|plus|jamais|que)",
    "es": "solo|sólo|solamente|únicamente|como máximo|máximo|al menos|mínimo|salvo|excepto|exactas?|exactamente|ningún|"
    "ninguna|sin|ni|no|hasta|por|cada|todos los|cuando|siempre que|si|antes de|después de|a partir de|caduca|nada de|corrección|cambi[óa]|reemplaz*|renombr*|en vez de",
    "ru": "только|не более|не менее|максимум|минимум|кроме|ровно|нельзя|без|ни|не|до|на каждый|кажд*|если|когда|перед|"
    "после|прежде чем|лишь|запрещ*|начиная|исправлени*|заменен*|заменён*|переименов*|вместо",
    "ar": "فقط|على الأكثر|على الأقل| إلا |باستثناء|دون|بدون| لا |ولا | ليس |وليس | حتى | لكل | كل | إذا |وإذا | عند |عندما| قبل | بعد |لا يجوز|ممنوع|يمنع|حصرا|تصحيح|استبدل",
    "ko": "에만|에서만|까지만|로만|때만|만 사용|만 허용|만 가능|만 받|만 한다|이하|이상|이내|최대|최소|제외|없이|않는|않도록|안 된다|안 됨|못 |불가|금지|마다|매주|매일|매월|면 |경우|때는|때만|"
    "뒤에|전에|후에|부터|이후|반드시|정정|변경|교체",
    "ja": "のみ|だけ|以上|以下|以内|以降|まで|最大|最小|上限|除く|以外|なし|不可|禁止|しない|できない|れない|せない|はならない|はいけない|ないこと|ず、|毎週|毎日|毎月|ごと|場合|たら|とき|時は|"
    "前に|後に|こと。|必須|避ける|一切|しか|訂正|変更|改名",
    "zh": "只|仅|僅|最多|最少|至少|不得|不能|不可|不许|不許|不要|不超过|不超過|以内|以上|以下|除了|除非|一律|严禁|嚴禁|禁止|无需|每|如果|若|一旦|"
    "之前|之后|之後|前必须|后才|才能|否则|否則|统一|統一|必须|必須|勿|请别|千万别|更正|改为|改成|更名",
    "th": "เท่านั้น|ไม่เกิน|อย่างน้อย|สูงสุด|ต่ำสุด|ยกเว้น|ห้าม|ไม่ต้อง|ไม่รับ|ไม่ให้|ไม่มี|โดยไม่|ทุก|ครั้งละ|วันละ|ถ้า|หาก|เมื่อ|ก่อน|หลังจาก|ตั้งแต่|จนกว่า|ภายใน|เฉพาะ|แก้ไขเป็น|เปลี่ยนเป็น|เปลี่ยนจาก",
}
"""Limits, conditions and recurrences: what makes a sentence a rule that will apply again."""

STAKE: Mapping[str, str] = {
    "en": r"allerg\w*|intoleran\w*|coeliac|celiac|diabet\w*|insulin|asthma\w*|epilep\w*|pregnan\w*|anaphyla\w*|medic\w*|dose|"
    r"dosage|\d+ ?mg|blood type|disab\w*|surgery|emergency|legal\w*|contracts?|laws?|audit\w*|regulat\w*|complian\w*|licen[cs]e\w*|"
    r"passwords?|credentials?|tokens?|secrets?|keys?|pins?|confidential|private|deadlocks?|crash\w*|corrupt\w*|breaks?|broke|"
    r"kills?|fails?|loses?|lost|leaks?|silently|data loss|outage|root cause|fixed|because|due to|otherwise|or else|"
    r"deaf|hearing|hears|blind\w*|wheelchair|crutches|migraines?|autis\w*|dyslexi\w*|phobi\w*|afraid|fears?|panics?|faint\w*|pills?|heart|vegan|vegetarian|kosher|halal|diet|came from|comes from|caused|causes|turned out|solved|cured|resolved|works again|errors?|bugs?|lesson|missing|expired|broken|dirty|stuck|jams?|fine of|penalty|fees?|insured|warranty|deposit|danger\w*|poison\w*|toxic",
    "de": "allerg*|unverträglich*|zöliakie|diabet*|insulin|asthma|epilep*|schwanger*|medikament*|dosis|notfall|vertrag*|gesetz*|"
    "prüf*|lizenz*|passwort|passwörter|zugangsdaten|schlüssel|geheim*|vertraulich|absturz|stürzt|verlier*|verlust|kaputt|fehler*|"
    "ursache|behoben|weil|wegen|sonst|"
    "taub|schwerhörig*|blind*|rollstuhl|krücken|migräne|autis*|legasthen*|phobie|angst|ohnmächtig|tabletten|herz*|vegan*|vegetari*|koscher|halal|diät|verträgt|krank*|allein wegen|lag an|kam von|verursach*|gelöst|repariert*|defekt*|fiel aus|fällt aus|abgelaufen|fehlt*|verstopft|verkalkt|strafe|gebühr*|kaution|versicher*|garantie|gefähr*|giftig",
    "fr": "allergi*|intolér*|diab*|insuline|asthm*|épilep*|enceinte|médic*|dose|urgence|contrat*|loi|légal*|audit|licence|mot de passe|"
    "clé|secret*|confidentiel*|panne|plant*|perd*|perte|corromp*|cause|corrigé|parce que|sinon|"
    r"sourd*|malentendant*|aveugle*|fauteuil roulant|béquilles|migraine*|autis*|dyslexi*|phobie|peur|malaise|comprimés|cœur|cardiaque|végan*|végétari*|casher|halal|régime|malade*|venai[ts] d\w*|vient d\w*|venaient d\w*|provoqu*|dû à|due à|résolu*|réglé*|répar*|erreur*|manquant*|manque*|expiré*|cassé*|bloqué*|amende|frais|caution|assur*|garantie|danger*|toxique*",
    "es": "alérg*|alergi*|intoleran*|celíac*|diab*|insulina|asma|epilep*|embaraz*|medic*|dosis|emergencia|contrat*|ley|legal*|auditor*|"
    "licencia*|contraseña*|clave*|secret*|confidencial*|fall*|pierd*|pérdida|rompe*|corromp*|causa|corrig*|porque|debido|si no|"
    "sord[oa]*|cieg[oa]*|silla de ruedas|muletas|migraña*|autis*|disléxic*|dislexia|fobia|miedo|desmay*|pastillas|corazón|cardíac*|vegan*|vegetarian*|kosher|halal|dieta|enferm*|venía de|viene de|vino de|provoc*|resuelv*|resolv*|arregl*|repar*|error*|faltaba*|falta|caducad*|vencid*|roto|rota|atascad*|multa|recargo|fianza|seguro|garantía|peligro*|tóxic*",
    "ru": "аллерги*|непереносим*|диабет*|инсулин*|астм*|эпилеп*|беремен*|лекарств*|доз*|договор*|закон*|аудит*|лицензи*|пароль|пароли|"
    "ключ*|секрет*|конфиденц*|сбо*|падает|теря*|потер*|ломает*|причин*|исправ*|потому|иначе|"
    "глух*|слыш*|слеп*|коляск*|костыл*|мигрен*|аутизм*|дислекси*|фоби*|боит*|боюсь|обморок*|таблет*|сердц*|сердеч*|веган*|вегетариан*|кошер*|халял*|диет*|болен|больн*|болезн*|из-за|вызван*|оказал*|решил* проблем*|почин*|устран*|ошибк*|неверн*|не хватал*|нехватк*|истек*|сломан*|застря*|штраф*|комисси*|залог*|страхов*|гаранти*|опасн*|ядовит*",
    "ar": "حساسية|سكري|أنسولين|ربو|صرع|حامل|دواء|جرعة|طوارئ|عقد|قانون|تدقيق|ترخيص|كلمة المرور|كلمة السر|مفتاح| سري |سرية|يفشل|يتعطل|فقدان|يضيع|"
    "تلف|سبب|لأن|وإلا|"
    "أصم|الصم|أعمى|لا يسمع|كرسي متحرك|عكاز|صداع|توحد|رهاب|يخاف|تخاف|خوف|إغماء|حبوب|قلب|نباتي|حلال|حمية|مريض|مرض|مصاب|ناتج عن|نتج عن|تبين أن|حل المشكلة|إصلاح|خطأ|خاطئ|ناقص|انتهاء|منتهي|مكسور|عالق|غرامة|رسوم|تأمين|ضمان|خطر|سام",
    "ko": "알레르기|당뇨|인슐린|천식|뇌전증|임신|복용|투약|용량|응급|계약|법적|법률|규정|라이선스|비밀번호|암호|인증|키는|비공개|기밀|장애|"
    "실패|유실|손실|깨진|깨짐|중단|원인|때문|수정했|고쳤|"
    "청각|귀가|시각장애|휠체어|목발|편두통|자폐|난독|공포|무서워|두려워|실신|알약|심장|채식|비건|할랄|식단|환자|질환|지병|탓|때문|해결|복구|오류|에러|버그|잘못|누락|만료|고장|막혀|벌금|과태료|수수료|보증금|보험|보증|위험|독성",
    "ja": "アレルギー|糖尿|インスリン|喘息|てんかん|妊娠|服用|投薬|用量|救急|契約|法律|法令|監査|規制|ライセンス|パスワード|認証|鍵|秘密|非公開|"
    "障害|失敗|消える|失われ|破損|壊れ|停止|原因|ため|修正|叱ら|"
    "難聴|耳が|聴覚|視覚障害|車椅子|車いす|松葉杖|片頭痛|自閉|失読|恐怖|怖|失神|錠剤|心臓|菜食|ビーガン|ハラル|食事制限|病気|持病|せい|解決|直した|直し|直る|復旧|エラー|不具合|誤り|漏れ|期限切れ|故障|詰まり|罰金|手数料|保証金|敷金|保険|危険|有毒",
    "zh": "过敏|過敏|糖尿|胰岛素|哮喘|癫痫|怀孕|懷孕|服药|用药|药物|吃药|剂量|急救|合同|法律|合规|审计|審計|许可证|密码|密碼|凭证|密钥|密鑰|保密|机密|故障|失败|失敗|"
    "丢失|丢弃|遗失|损坏|崩溃|死锁|原因|因为|因為|否则|导致|導致|"
    "耳聋|失聪|听力|听不|失明|视力|轮椅|拐杖|偏头痛|自闭|阅读障碍|恐惧|害怕|怕|晕倒|药片|心脏|素食|纯素|清真|忌口|疾病|患有|病史|由于|源于|解决|修复|修好|恢复|错误|设错|出错|缺少|缺失|过期|坏了|卡住|罚款|手续费|押金|保险|保修|危险|有毒",
    "th": "แพ้|เบาหวาน|อินซูลิน|หอบหืด|ลมชัก|ตั้งครรภ์|กินยา|ใช้ยา|แพ้ยา|ขนาดยา|ฉุกเฉิน|สัญญา|กฎหมาย|ตรวจสอบบัญชี|ใบอนุญาต|รหัสผ่าน|กุญแจ|ความลับ|ล่ม|ล้มเหลว|สูญหาย|"
    "เสียหาย|พัง|สาเหตุ|เพราะ|มิฉะนั้น|"
    "หูหนวก|หูตึง|ได้ยิน|ตาบอด|รถเข็น|ไม้ค้ำ|ไมเกรน|ออทิสติก|กลัว|เป็นลม|ยาเม็ด|หัวใจ|มังสวิรัติ|วีแกน|ฮาลาล|คุมอาหาร|โรค|ป่วย|เนื่องจาก|เกิดจาก|แก้ไข|แก้ได้|ซ่อม|ข้อผิดพลาด|ผิด|ขาด|หมดอายุ|เสีย|ติดขัด|ค่าปรับ|ค่าธรรมเนียม|มัดจำ|ประกัน|รับประกัน|อันตราย|พิษ",
}
"""What it costs to forget: health, law, access, loss; and why something went wrong."""

PASSING: Mapping[str, str] = {
    "en": r"right now|just now|at the moment|at present|currently|for now|as of this \w+|just|so far|today|tonight|this morning|"
    r"this afternoon|this evening|still (?:\w+ing|not|no|in|on|at|down|open|red|broken)|waiting|i'm \w+ing|is \w+ing|are \w+ing|temporary|temporarily|tmp|temp|wip|trying|"
    r"tried|ran out of time|will see|until i|in a minute|yesterday|again|(?<!be )discuss\w*|considered|considering|thinking about|brainstorm\w*|"
    r"wonder\w*|undecided|open question|"
    r"now(?= (?:i|i'm|we|we're|waiting|looking)\b)|now(?=[.;!])|in progress|remaining|\d+ ?\w* left|eta|elapsed|in transit|\d+ (?:of|out of) \d+|currently|soon|later(?=[.,;]| today)|for a while|another day|some day|one day|"
    "no (?:verdict|idea|result|errors|luck)|inconclusive|nothing (?:found|new|to report|conclusive)|to be continued|unresolved|(?:looks?|works?) fine|all (?:good|fine)|as usual|uneventful",
    "de": "gerade|jetzt|momentan|im moment|derzeit|aktuell|zurzeit|noch im|noch am|vorläufig|heute|gestern|vorhin|eben|gleich|"
    "warte|wartet|sitze|bin dabei|versuche|kurz|überleg*|diskutier*|unentschieden|"
    r"\d+ von \d+|in arbeit|unterwegs|läuft noch|verbleib*|restliche*|lädt|noch etwa|noch ca|nachher|später|demnächst|morgen weiter|irgendwann|ich \w+e (?:gerade|jetzt)|"
    "ohne ergebnis|ergebnislos|keine ahnung|nichts gefunden|ungeklärt|ohne auffälligkeiten|alles gut|alles in ordnung|wie immer|nichts neues|bisher keine",
    "fr": "en ce moment|maintenant|actuellement|pour l'instant|pour le moment|aujourd'hui|hier|ce matin|ce soir|en train de|"
    "attend*|encore en|provisoire*|discut*|réfléchi*|hésit*|"
    r"\d+ sur \d[\d ]*|en cours|en transit|en route|restant*|encore \d+|charge*|chargement|voilà|tout à l'heure|plus tard|bientôt|un jour ou l'autre|on verra|je \w+e ici|"
    "sans résultat|sans conclusion|aucune idée|rien de clair|rien trouvé|rien à signaler|tout va bien|comme d'habitude|rien de nouveau",
    "es": "ahora|ahora mismo|en este momento|de momento|por ahora|actualmente|hoy|ayer|esta mañana|esta tarde|esta noche|"
    "estoy|está \\w+ndo|sigo|sigue|esperando|todavía|un rato|discut*|pensando|considerando|sin decidir|"
    r"\d+ de \d[\d.]*|en curso|en tránsito|en camino|quedan|queda|restantes?|cargando|copiando|\w+(?:ando|iendo) ahora|anoche|luego|más tarde|pronto|algún día|ya veremos|"
    "sin resultado|sin conclusión|ni idea|nada claro|sin novedad*|todo bien|como siempre|sin errores|nada nuevo",
    "ru": "сейчас|прямо сейчас|в данный момент|пока|пока что|сегодня|вчера|утром|вечером|жду|ждём|ещё|временно|пытаюсь|обсужда*|обсудил*|думаем|думает|раздумыва*|"
    r"\d+ из \d+|в процессе|выполняется|загруж*|в пути|осталось|идёт|теперь смотр*|позже|потом|скоро|когда-нибудь|опять|снова|посмотрим|"
    "без результат*|безрезультатно|ничего не нашл*|непонятно|неясно|всё в порядке|все в порядке|как обычно|ничего нового|без ошибок",
    "ar": "الآن|حاليا|حاليًا|في هذه اللحظة|اليوم|أمس|البارحة|هذا الصباح|الليلة|أنتظر|ننتظر|ما زال|مؤقت|ناقش|نناقش|نفكر|يفكر|لم نقرر|"
    "جاري|جار |قيد |تقدم|باقي|متبق|في الطريق|لاحقا|قريبا|يوما ما|بعد قليل|تم نسخ|تم تحميل|سنرى|"
    "دون نتيجة|بلا نتيجة|لم نجد شيئا|غير واضح|على ما يرام|كالعادة|لا جديد|كل شيء جيد",
    "ko": "지금|현재|방금|오늘|어제|오늘 아침|오늘 저녁|당분간|임시|기다리|대기 중|하는 중|고 있는 중|중이다|중입니다|아직|잠깐|잠시|논의|고민|검토 중|생각 중|"
    "진행 중|진행률|진행,|남음|남았|이동 중|처리 중|로딩|운송 중|나중에|곧 |다음에|언젠가|두고 보|"
    "소득이 없|소득 없|성과 없|결론 없|못 찾았|찾지 못했|이상 없|문제없|문제 없|평소처럼|순조롭",
    "ja": "今は|今、|今ちょうど|今のところ|いま、|現在|ただいま|さっき|先ほど|今日|本日|昨日|今朝|今夜|とりあえず|一時的|待っ|待ち|ているところ|中です|まだ|ちょうど|ちょっと|検討|議論|考え中|相談|未定|"
    "進捗|残り|進行中|処理中|読み込み|輸送中|移動中|途中|後で|あとで|また今度|いつか|そのうち|様子見|"
    "成果なし|結論なし|手がかりなし|見つからなかった|問題なし|異常なし|いつも通り|順調",
    "zh": "现在|現在|目前|此刻|正在|刚才|剛才|刚刚|剛剛|今天|昨天|今早|今晚|暂时|暫時|等着|等待|还在|還在|先这样|一会儿|这会儿|讨论|討論|考虑|考慮|商量|还没定|未定|"
    "进度|進度|剩余|剩餘|进行中|加载中|处理中|运输中|途中|路上|稍后|以后再|改天|回头|再说|有空|已复制|已下载|已上传|"
    "没结论|没有结论|没什么收获|没收获|没找到|无果|一切正常|无异常|没问题|照常|顺利",
    "th": "ตอนนี้|ขณะนี้|กำลัง|เมื่อกี้|เมื่อสักครู่|วันนี้|เมื่อวาน|เช้านี้|คืนนี้|ชั่วคราว|รออยู่|รอดู|รอก่อน|สักพัก|เดี๋ยว|ยังไม่|เพิ่ง|คุยกัน|พิจารณา|คิดอยู่|"
    "คืบหน้า|เหลืออีก|เหลือประมาณ|ระหว่างทาง|โหลด|ไว้ค่อย|ทีหลัง|วันหลัง|เร็ว ๆ นี้|สักวัน|ค่อยว่ากัน|"
    "ไม่พบอะไร|ไม่ได้ผล|ยังหาไม่เจอ|ไม่คืบหน้า|ไม่มีข้อสรุป|ปกติดี|ไม่มีปัญหา|เรียบร้อยดี|ตามปกติ|ราบรื่น",
}
"""What holds now and will not tomorrow: states, work in hand, attempts that are going on."""

CHATTER: Mapping[str, str] = {
    "en": r"mentioned|recounted|anecdote|story|stories|chat|chatted|joked?|jokes|laugh\w*|enjoy\w*|lovely|gorgeous|pleasant|funny|nice|"
    r"weather|coffee|(?:nice|great|good|lovely|your|my|everyone's) weekend|good time|great time|wished|hoped|hopes|thanked|chit|overall|fun|fond|cheerful|friendly|remembers|"
    r"angry|furious|fed up|worst|awful|tired|sigh\w*|feels|felt|happy|sad|surprising|cute|rainy|sunny|"
    r"lunch|dinner|breakfast|brunch|pizzas?|cakes?|cookies|biscuits|doughnuts|snacks?|sandwich\w*|beers?|wine|tea|barbecue|picnic|party|parties|movie|football|match|concert|happy to help|let me know|feel free|as an assistant|sorry|apolog\w*|helpful|ugh|mad|crazy|hate this|annoyed|bored|boring|excited|delighted|pleased|smil\w*|emoji|selfie|photos?|video|gossip\w*|holidays?|vacation|"
    r"plays \w+ on|squad|kick-?off|league|championship|tournament|scored \w+ goals|mascot",
    "de": "erzähl*|anekdote|geschichte|geplaudert|lacht*|gelacht|witz*|nett*|schön*|lustig*|wetter|kaffee|kuchen|schönes wochenende|"
    "feierabend|gewünscht|bedankt|gefreut|freut|freude|genoss*|wütend|genervt|müde|traurig|glücklich|fühlt*|seufz*|"
    "mittagessen|abendessen|frühstück*|pizza|kekse|bier|wein|tee|grillen|party|feier*|film|fußball|spiel|konzert|gern geholfen|entschuldig*|tut mir leid|genervt|gelangweilt|langweilig|begeistert|lächel*|foto*|video|urlaub|tratsch*|"
    "kader|liga|meisterschaft|turnier|anpfiff|spielt am",
    "fr": "racont*|anecdote|histoire|bavard*|rire|rit|ri|blague*|joli*|agréable*|drôle*|météo|beau temps|café|bon week-end|souhait*|"
    "remerci*|espér*|content*|fâché*|marre|fatigué*|triste*|heureu*|"
    "déjeuner|dîner|petit-déjeuner|pizza*|gâteau*|biscuits|croissants|bière|vin|thé|pique-nique|fête|film|foot|match|concert|désolé*|navré*|excus*|ravi*|ennuyé*|ennuyeu*|sourire|sourit|photo*|vidéo|vacances|potins|"
    r"ligue|championnat|tournoi|joue \w+ (?:à|contre)|coup d'envoi",
    "es": "cont[óa]|cuenta que|anécdota|historia|charl*|ri[óe]|reír*|broma*|bonit*|agradable*|divertid*|simpátic*|clima|café|buen fin de semana|"
    "dese[óa]*|agradeci*|encantad*|enfadad*|harto|harta|cansad*|triste*|feliz|contento|contenta|comentan|"
    "almuerzo|almorzar|comida|cena|cenar|desayun*|pizzas?|tarta|pastel|galletas|bocadillo*|cerveza*|vino|té|picnic|fiesta|película|fútbol|partido|concierto|perdón|disculp*|lo siento|aburrid*|emocionad*|sonri*|foto*|vídeo|vacaciones|cotille*|"
    "liga|campeonato|torneo|juega el|juega contra",
    "ru": "рассказ*|анекдот*|истори*|болта*|смея*|шутк*|шутил*|мил*|приятн*|забавн*|погод*|кофе|хороших выходных|пожела*|поблагодар*|надея*|"
    "рад|рада|злит*|надоел*|устал*|груст*|счастлив*|"
    "обед|обеда*|ужин*|завтрак*|пицц*|торт*|печень*|пирож*|бутерброд*|пив*|вин[оа]|чай|чая|чаю|пикник*|вечеринк*|праздник*|фильм*|футбол*|матч*|концерт*|извин*|прости*|скучн*|в восторге|улыб*|фото*|видео|отпуск*|сплетн*|"
    "лига|лиги|чемпионат*|турнир*|играет в|играет со?",
    "ar": "حكى|حكت|قصة|ضحك|يضحك|نكتة|لطيف|جميل|ممتع|الطقس|القهوة|قهوة|تمنى|تمنت|شكرني| شكر|سعيد|غاضب|تعب|حزين|ودعني|لذيذ|"
    "غداء|نتغدى|تغدى|عشاء|فطور|إفطار|بيتزا|كعك|حلوى|شاي|نزهة|حفلة|فيلم|مباراة|كرة القدم|حفل |آسف|عذرا|معذرة|ممل|متحمس|ابتسم|صورة|صور |فيديو|عطلة سعيدة|إجازة ممتعة|ثرثر|"
    "الدوري|بطولة|يلعب ضد",
    "ko": "이야기했|이야기를|얘기|수다|웃었|웃으|농담|재미있|재밌|예쁘|예쁜|귀여|날씨|커피|즐거운 주말|주말 잘|즐거|고맙|고마워|감사하|반가|화가|짜증|피곤|슬프|"
    "행복|기분|느꼈|느낀|"
    "점심|저녁|아침 식사|브런치|피자|케이크|과자|쿠키|도넛|간식|맥주|와인|차를 마|소풍|파티|영화|축구|경기|콘서트|죄송|미안|지루|신나|신났|미소|사진|동영상|휴가|수다|"
    "리그|선수권|대회|킥오프",
    "ja": "話してくれ|話をして|思い出話|雑談|笑っ|笑い|冗談|楽し|かわい|可愛|きれい|天気|コーヒー|良い週末|週末は天気|嬉し|うれし|ありがと|お礼|怒っ|もう嫌|疲れ|"
    "悲し|幸せ|気分|気持ち|ため息|最悪|"
    "昼食|お昼|ランチ|夕食|夕飯|朝食|ピザ|ケーキ|クッキー|お菓子|ドーナツ|おやつ|ビール|ワイン|お茶|ピクニック|パーティー|映画|サッカー|試合|コンサート|ごめん|申し訳|すみません|退屈|わくわく|微笑|写真|動画|休暇|噂話|"
    "リーグ|選手権|大会|キックオフ",
    "zh": "聊|讲了|故事|笑|玩笑|有趣|好玩|可爱|可愛|漂亮|天气|天氣|咖啡|周末愉快|周末快乐|週末は天気|开心|開心|高兴|高興|祝你|祝大家|祝福|感谢|感謝|谢谢|生气|生氣|好烦|烦死|好累|太累|难过|心情|觉得|感觉|"
    "午饭|午餐|晚饭|晚餐|早饭|早餐|披萨|蛋糕|饼干|零食|甜点|啤酒|红酒|喝茶|奶茶|野餐|聚会|派对|电影|足球|球赛|比赛|演唱会|抱歉|对不起|无聊|激动|微笑|照片|拍照|视频|度假|八卦|"
    "联赛|锦标赛|开球|阵容",
    "th": "เล่า|เรื่องตลก|หัวเราะ|คุยเล่น|สนุก|น่ารัก|สวย|อากาศ|กาแฟ|ขอบคุณ|ดีใจ|โกรธ|หงุดหงิด|เหนื่อย|เศร้า|มีความสุข|รู้สึก|อร่อย|"
    "มื้อเที่ยง|มื้อเย็น|อาหารเช้า|กินข้าว|พิซซ่า|เค้ก|คุกกี้|ขนม|เบียร์|ไวน์|น้ำชา|ปิกนิก|ปาร์ตี้|งานเลี้ยง|ดูหนัง|ภาพยนตร์|ฟุตบอล|คอนเสิร์ต|ขอโทษ|เสียใจด้วย|เบื่อ|ตื่นเต้น|ยิ้ม|รูปถ่าย|ถ่ายรูป|วิดีโอ|พักร้อน|นินทา|"
    "ลีก|แข่งขัน|ทัวร์นาเมนต์",
}
"""What is said in company and what is vented: stories, courtesies, moods."""

EMPHASIS: Mapping[str, str] = {
    "en": r"very(?! least| same| first| own)|super|really|extremely|so important|important|big deal|everybody|everyone|everything|absolutely|seriously|"
    "properly|top priority|double check|triple check|no matter what",
    "de": "sehr|extrem*|super|wirklich|unbedingt|wichtig*|absolut|alle müssen|total|ganz ganz|dringendst*|allerwichtigst*",
    "fr": "très|super|vraiment|extrêmement|important*|absolument|tout le monde|impératif|surtout|hyper",
    "es": "muy|súper|super|realmente|importantísim*|important*|absolutamente|todo el mundo|todos deben|urgentísim*|sobre todo|de verdad",
    "ru": "очень|супер|действительно|крайне|важн*|абсолютно|все должны|обязательно|ни в коем случае|самое главное",
    "ar": "جدا|جدًا|للغاية|مهم|في غاية|فعلا|حقا|الجميع|ضروري|أهم|بشدة",
    "ko": "매우|정말|진짜|너무|아주|중요|최우선|모두가|완벽하게|제대로|절대로|명심|다시 한번|강조",
    "ja": "とても|本当に|非常に|すごく|めちゃ|とにかく|重要|大事|最優先|みんな|全員|絶対に|くれぐれも|しっかり|ちゃんと|何度でも",
    "zh": r"非常|真的|特别|特別|极其|極其|(?<![一二三四五六七八九几])十分(?!钟|鐘|之)|超级|超級|重要|大家|千万|千萬|一定要|务必要|再次强调|最最|好好",
    "th": "มาก|สุด ๆ|จริง ๆ|สำคัญ|ทุกคน|เด็ดขาด|ที่สุด|ย้ำ|อย่างยิ่ง|แน่นอน",
}
"""How loudly something is said, which says nothing itself."""

PAST: Mapping[str, str] = {
    "en": r"went|saw|looked|glanced|clicked|scrolled|typed|ate|drank|cooked|met|sat(?!,| \d)|stood|walked|drove|rode|flew|travelled|came(?! from| back)|"
    r"took|brought|gave|played|sang|danced|drew|wrote|answered|noticed|heard|listened|wandered|stayed|arrived|rang|phoned|dropped by|described|recalled|"
    r"grew up|as a (?:child|kid|boy|girl)|won|lost to|talked|said|told|ran the|made (?:a|an|some|tea|coffee)|had (?:a|an|some)|there (?:was|were)|poked|"
    r"searched|ran into|got (?:a|an|home|back|up)|finished|started|put (?:it|them|on|down|back|away)|swam|climbed|done|"
    r"(?<!is )(?<!are )(?<!be )(?<!been )(?<!get )(?<!never )(?<!not )(?<!only )(?:watched|opened|copied|bought|visited|spent|painted|wiped|hung|gathered|"
    r"collected|chased|sorted|shot|laid|sent|showed us|parked|browsed|read through|went through)|"
    r"used to|formerly|previously|back (?:then|in)|in those days|at that time|years ago|long gone|obsolete|outdated|had been|once \w+ed|"
    r"last (?:week|month|night|summer|winter|spring|autumn)|until (?:19|20)[01]\d",
    "de": r"ging|gingen|sah|sahen|schaute*|geschaut|angeschaut|gesehen|gegangen|gefahren|fuhr|fuhren|kaufte*|gekauft|trank|tranken|getrunken|aß|aßen|gegessen|"
    r"getroffen|traf|trafen|öffnete*|geöffnet|klickte*|saß|saßen|gesessen|brachte*|gebracht|holte*|geholt|probiert*|ausprobiert|besucht|besuchte*|fand|nahm|nahmen|"
    r"kam|kamen|gekommen|zeigte*|gezeigt|spielte*|gespielt|sang|malte*|gemalt|schrieb*|hörte*|gehört|blieb*|gesucht|suchte*|telefoniert|machte*|gemacht|sagte*|"
    r"besprochen|stand|standen|wurde \w+|wurden \w+|als kind|früher|ehemals|damals|seinerzeit|einst|vormals|veraltet|überholt|letzte \w+|vor jahren",
    "fr": r"(?:a|ai|as|ont|avons|avez) (?:\w+ )?(?!r[ée]gl|r[ée]sol|corrig|provoqu|caus|décid|choisi|conven|adopt|perdu|confirm|appris|besoin)\w+(?:é|ée|és|ées|u|us|is|it|ert)|(?:est|sont|suis|sommes) (?:allé|venu|parti|arrivé|resté|passé|tombé|rentré|sorti)\w*|"
    r"était|étaient|avait|avaient|faisai\w+|s'est \w+|se sont \w+|autrefois|jadis|auparavant|à l'époque|anciennement|obsolète*|enfant|il y a \w+ ans|la semaine dernière|l'an dernier",
    "es": r"(?!corrig|arregl|resolv|provoc|caus|decid|decis|cambi|acord|confirm|fall|perd|romp)\w{2,}(?:aron|ieron|[^aeiou\W]ó)|fue|fui|fuimos|vio|vieron|vimos|hizo|hicimos|estuv*|tuv[oi]*|estaba*|había*|abrí|miré|fui|comí|compré|llegué|pasé|dejé|"
    r"antes (?:el|la|los|las|se|era|estaba)|antiguamente|anteriormente|en aquel entonces|obsolet*|dejó de|de niñ[oa]|hace años|la semana pasada",
    "ru": r"ходил*|ездил*|поехал*|смотрел*|посмотрел*|видел*|открыл*|закрыл*|купил*|привёз|привез*|сидел*|пошёл|пошли|пошла|встретил*|гулял*|ел|ела|ели|пил|пила|пили|выпил*|"
    r"пробовал*|попробовал*|сфотограф*|говорил*|сказал*|играл*|пел|пела|пели|рисовал*|написал*|слушал*|пришёл|пришл*|взял*|нашёл|нашл*|искал*|звонил*|позвонил*|"
    r"собирал*|стоял*|остал*|налил*|разлил*|показал*|разошл*|провел*|провёл|было|раньше|ранее|прежде(?! чем)|когда-то|в детстве|тогда|устарел*|бывш*|в прошлом|лет назад",
    "ar": "زار |زارت|ذهب|ذهبت|نظر |نظرنا|نظرت|فتحنا|فتحت|جلس|أكل |أكلت|شرب|اشترى|اشترت|التقى|شاهد|سافر|قضى|قضينا|رأى|رأيت|لعب|وجدت|لم نجد|حاول|جربت|جربنا|كتبت|قال |قالت|"
    "وصل|وصلت|اتصل|اتصلت|أحضر|أخذ |تحدثنا|كان يأكل|كانت|سابقا|في السابق|قديما|آنذاك|حينها|لم يعد|في الماضي|منذ سنوات|في طفولت",
    "ko": "(?<!되)었다|(?<!받)았다|(?<!결정)(?<!확정)(?<!수정)(?<!해결)(?<!합의)(?<!기로 )(?<!변경)했다|갔다|왔다|봤다|졌다|렸다|켰다|썼다|웠다|겼다|셨다|눴다|었고|았고|했고|갔고|왔고|봤고|었지만|았지만|했지만|보고 |먹고|마시고|놀았|다녀|하다가|려다가|"
    "예전|이전에는|옛날|당시|과거에|한때|어릴 때|어렸을|지난주|지난달|작년|몇 년 전",
    "ja": "(?<!だ)(?<!な)(?<!ま)った。|(?<!定)(?<!決)(?<!修正)(?<!解決)(?<!変更)(?<!確認)した。|いた。|えた。|んだ。|けた。|きた。|めた。|べた。|見た|行った|来た|撮った|買った|食べた|飲んだ|開いた|開けた|遊んだ|話した|眺め|聞いた|言った|座っ|歩い|"
    "った、|したが|したところ|しばらく|以前は|かつて|昔は|昔、|当時|旧|子供の頃|子どもの頃|先週|先月|去年|数年前|通過",
    "zh": "看了|去了|来了|吃了|喝了|买了|拍了|打开了|开了|见了|遇到|去过|来过|看过|坐了|走了|玩了|写了|听了|说了|问了|找了|试了|翻了|花了|打了|送了|带了|拿了|下班了|"
    "以前|曾经|曾經|当时|當時|早年|过去|過去|小时候|过时|上周|上个月|去年|几年前|到达|离开",
    "th": "ไปเที่ยว|ไปกิน|ไปดู|ไปเล่น|ถ่ายรูปมา|เจอกับ|นั่งคุย|นั่งดู|เปิดดู|เปิดไป|ไปซื้อ|แล้วก็|กลับบ้าน|เดินเล่น|เมื่อปี|ตอนเด็ก|ครั้งหนึ่ง|เมื่อก่อน|แต่ก่อน|สมัยก่อน|ในอดีต|"
    "ตอนนั้น|เคย|ล้าสมัย|สัปดาห์ก่อน|เดือนก่อน|ปีก่อน|ปีที่แล้ว|โทรไป|ไม่พบอะไร",
}
"""What is over: told as it happened once, or no longer so."""

TRUISM: Mapping[str, str] = {
    "en": r"is key|is the key|key to (?:success|happiness|growth|everything|\w+ing)|matters|success\w*|teamwork|communication is|quality is|foundation of|at the heart|half the battle|everybody's|everyone's|everybody knows|"
    r"goes a long way|strive\w*|precious|as (?:we|they) say|that's life|the most important thing|in life|life is|should all|mindful|good \w+ (?:is|are)|"
    r"is better than|come first|always remember|keep in mind|valuable|excellence|popular|well-known|in the world|as everybody|happens? to everyone|learn from|"
    r"capital of|inhabitants|population of|million people|programming language|invented by|first released in|founded in \d{4}|world's \w+|of all time|planet|continent|century|emperor|famous\w*|historically|by definition|art of|as \w+ once (?:said|told|wrote)|do the usual",
    "de": "das a und o|erfolg*|teamarbeit|teamgeist|zusammenhalt|qualität ist|kommunikation ist|vertrauen ist|am ende zählt|am ende des tages|jeder weiß|bekanntlich|grundlage|fundament|"
    "gemeinsam|im mittelpunkt|das wichtigste|der mensch|menschen|übung macht|jeder einzelne|man sollte|so ist das leben|beliebt|weltweit|stets bemüht|"
    "hauptstadt|einwohner|bevölkerung|programmiersprache|erfunden von|der welt|aller zeiten|planet*|kontinent|jahrhundert*|kaiser|berühmt*|das übliche",
    "fr": "succès|réussite|travail d'équipe|esprit d'équipe|la qualité|la communication est|la confiance est|au cœur de|la clé|chacun|tout le monde|ensemble|fondement|la base de|"
    "essentiel*|c'est la vie|comme on dit|l'humain|les gens|il faut toujours|dans la vie|populaire|dans le monde|excellence|satisfaction|"
    "capitale|habitants|population|langage de programmation|inventé par|de tous les temps|planète|continent|siècle|empereur|célèbre*|comme d'habitude",
    "es": "éxito|trabajo en equipo|la calidad|la comunicación es|la confianza|la clave|la base de|el corazón de|juntos|todos|cada uno|fundamental*|lo más importante|así es la vida|"
    "como dicen|la gente|en la vida|siempre hay que|popular|en el mundo|excelencia|responsabilidad de todos|"
    "capital de|habitantes|población|lenguaje de programación|inventado por|de todos los tiempos|planeta|continente|siglo|emperador|famos*|lo de siempre",
    "ru": "успех*|команда —|командн*|качество —|общение —|доверие —|залог*|основа|каждый|вместе|общее дело|самое важное|самое главное|такова жизнь|как говорится|люди|в жизни|"
    "стремим*|сила|популярн*|в мире|всегда помн*|"
    "столица|столицы|жителей|населени*|язык программирования|изобрел*|всех времён|планет*|континент*|век|века|император*|знаменит*|как всегда",
    "ar": "نجاح|العمل الجماعي|روح الفريق|الجودة|التواصل هو|الثقة أساس|أساس|جوهر|معا |الجميع|كل شخص|الأهداف|أهم شيء|هكذا الحياة|كما يقال|الناس|في الحياة|نسعى|التميز|في العالم|مشهور|"
    "عاصمة|نسمة|عدد السكان|لغة برمجة|اخترع|كل العصور|كوكب|قارة|القرن|إمبراطور|شهير|كالمعتاد",
    "ko": "성공|팀워크|협동|품질은|소통은|소통이|신뢰는|기본이|핵심은|모두가|함께|누구나|가장 중요|인생|사람들|최선|노력|유명|인기|세계에서|말하듯|"
    "수도이|수도는|인구|프로그래밍 언어|발명|역사상|행성|대륙|세기|황제|늘 하던",
    "ja": "成功|チームワーク|品質こそ|品質は|コミュニケーションは|信頼は|基本であ|鍵、|みんなで|皆で|力を合わせ|誰もが|一番大事|人生|人々|最善|努力|心がけ|有名|人気|世界で|と言われ|"
    "首都|人口|プログラミング言語|発明|史上|惑星|大陸|世紀|皇帝|いつもの",
    "zh": "成功|团队合作|團隊合作|团结|质量是|品质|沟通是|沟通好|信任是|基础|关键|众人|大家|人人|每个人|最重要的|人生|生活就是|人们|追求|卓越|努力|著名|世界上|俗话|多沟通|多理解|"
    "首都|人口|编程语言|发明|史上|行星|大陆|世纪|皇帝|闻名|老一套",
    "th": "ความสำเร็จ|ทำงานเป็นทีม|ทีมเวิร์ก|คุณภาพคือ|การสื่อสารเป็น|การสื่อสารที่|ความไว้วางใจ|พื้นฐาน|หัวใจของ|ทุกคน|ร่วมกัน|มีส่วนร่วม|ซึ่งกันและกัน|สำคัญที่สุด|ชีวิต|ผู้คน|มุ่งมั่น|"
    "ที่ดี|ดีที่สุดเสมอ|มีชื่อเสียง|ในโลก|เขาว่ากัน|"
    "เมืองหลวง|ประชากร|ภาษาโปรแกรม|ประดิษฐ์โดย|ตลอดกาล|ดาวเคราะห์|ทวีป|ศตวรรษ|จักรพรรดิ|เหมือนเดิม",
}
"""What is true of everything and everybody, and so tells of nothing."""
