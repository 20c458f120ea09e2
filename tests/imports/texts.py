"""Clauses of several shapes, by language."""

from tests.imports.shape import clauses

ENGLISH = clauses("""
    [PER Mara Lind] rents hall 7 in [LOC Lyon].
    [PER Otto Barr] pays the [ORG Harbour Board].
    No rent is due in March.
    The [ORG Harbour Board] of [LOC Lyon] met [PER Ines Holm].
""")
GERMAN = clauses("""
    [PER Jule Keller] wohnt in [LOC Bremen].
    Die [ORG Hafenbehörde] zahlt keine Miete.
    [PER Otto Brandt] verklagt die [ORG Werft Nord GmbH] in [LOC Emden].
    Der Vertrag endet im Mai.
""")
FRENCH = clauses("""
    [PER Lise Morel] loue un hangar à [LOC Brest].
    La [ORG Régie du Port] a refusé.
    [PER Paul Géraud] vend la grue à la [ORG Régie du Port].
    Aucun loyer reste dû.
""")
SPANISH = clauses("""
    [PER Inés Peña] alquila una nave en [LOC Cádiz].
    La [ORG Autoridad Portuaria] rechazó la oferta.
    ¿Quién paga a [PER Raúl Ibáñez]?
    El plazo vence en abril.
""")
PORTUGUESE = clauses("""
    [PER João Couto] aluga um armazém em [LOC Aveiro].
    A [ORG Junta do Porto] recusou a proposta.
    O prazo termina em maio.
""")
DUTCH = clauses("""
    [PER Joost Mulder] huurt een loods in [LOC Vlissingen].
    Het [ORG Havenschap] betaalt geen huur.
    De huur eindigt in mei.
""")
POLISH = clauses("""
    [PER Łucja Wrona] wynajmuje halę w [LOC Gdyni].
    [ORG Zarząd Portu] odmówił zapłaty.
    Umowa wygasa w maju.
""")
TURKISH = clauses("""
    [PER Ayşe Kılıç] depoyu [LOC İzmir] limanında kiraladı.
    [ORG Liman İdaresi] ödeme yapmadı.
    Sözleşme mayısta bitiyor.
""")
DANISH = clauses("""
    [PER Søren Dahl] lejer en hal i [LOC Esbjerg].
    [ORG Havnerådet] betaler ingen leje.
    Aftalen udløber i maj.
""")
HINDI = clauses("""
    [PER मीरा जोशी] ने [LOC पुणे] में गोदाम लिया।
    [ORG बंदरगाह मंडल] ने किराया नहीं दिया।
    अनुबंध मई में समाप्त होता है।
""")
ARABIC = clauses("""
    [PER ليلى حداد] تستأجر مخزنا في [LOC صور].
    رفضت [ORG هيئة الميناء] العرض.
    ينتهي العقد في أيار.
""")
CHINESE = clauses("""
    [PER 林美华]在[LOC 青岛]租了仓库。
    [ORG 港务局]没有付款。
    合同五月到期。
""")
JAPANESE = clauses("""
    [PER 森田葵]は[LOC 神戸]で倉庫を借りた。
    [ORG 港湾局]は支払わなかった。
    契約は五月に終わる。
""")
MEDICAL = clauses("""
    [CHEM Velotrin] eased [DIS harbour fever] in mice.
    No change was seen after a week.
    [DIS Dock lung] did not respond to [CHEM velotrin acetate].
    Both [CHEM velotrin] and [CHEM maresol] were safe.
""")
